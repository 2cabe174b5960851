"""Finished runs decided anew under many policies, from their recorded scores alone.

What a decision takes from texts is worked out once per claim and group, into arrays; a setting is then array work.
"""
