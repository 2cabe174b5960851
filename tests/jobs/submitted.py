"""Submits a job, shows its log and ends as it does; a process of its own, as Ray reads its token mode only once."""

import json
import sys
import time

from ray.job_submission import JobStatus, JobSubmissionClient

ENDED = {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED}

if __name__ == "__main__":
    asked = json.load(sys.stdin)
    client = JobSubmissionClient(asked["server"])
    job = client.submit_job(entrypoint=asked["entrypoint"], runtime_env=asked["runtime_env"])
    while client.get_job_status(job) not in ENDED:
        time.sleep(0.3)
    print(client.get_job_logs(job))
    sys.exit(client.get_job_status(job) is not JobStatus.SUCCEEDED)
