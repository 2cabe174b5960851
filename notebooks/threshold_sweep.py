# %% [markdown]
# # Threshold sweep
#
# Which thresholds would have been best for a finished run? The scores are frozen: every setting is decided anew from
# them, without a model. `RUN_DIR` names the run directory; without it a third of the demo corpus is verified here
# first, with the offline heuristic and every pair that a sweep needs. `NOTEBOOK_OUT` names the folder for the
# pictures. A run of a sealed cohort is refused, by the ledger that `LEDGER` names, else `runs/assays.jsonl`.
#
# The figures are measured on the claims that the setting is chosen by. What to expect of other claims is a question
# for `jobs.calibrate`.

# %%
import polars as pl
from pictures import shown
from small_run import run_directory

from verifier.sweep.job import SweepSpec, sweep
from verifier.sweep.pictures import curves_picture, heat_picture, line_picture
from verifier.sweep.runs import open_runs

run_dir = run_directory()
policy = open_runs([run_dir]).policy
print(f"{run_dir}: {policy}")

# %% [markdown]
# ## The grid
#
# The thresholds that the run's method has. A setting is best where recall is largest among those that keep the
# constraints. The heuristic that scores the demo does not reach a precision of 0.9 anywhere on it: with another model,
# ask for more.

# %%
RANGES = {
    "entailment_threshold": "0.5:1:0.05",
    "contradiction_threshold": "0.5:1:0.05",
    "threshold": "0:1:0.02",
    "supported": "0.5:1:0.01",
}
CONSTRAINTS = {"precision": ">=0.75"}
grid = {name: values for name, values in RANGES.items() if name in policy}
spec = SweepSpec(runs=run_dir, grid=grid, constraints=CONSTRAINTS, select="recall")
found = sweep(spec, lambda *_: None)
incomplete = found.table.filter(~pl.col("complete"))
print(f"{len(found.table)} settings of {found.table['claims'][0]} claims; {len(incomplete)} lack pairs")

# %% [markdown]
# ## The best settings, and the run's own
#
# `best` is empty where no setting keeps the constraints; the sentence says how near the nearest one comes.

# %%
SHOWN = [*grid, "precision", "recall", "f1", "false_support_rate", "auroc", "n_supported", "n_refuted", "n_contested"]
best = found.best.settings[0] if found.best.settings else None
top = pl.DataFrame(found.rows(found.best.settings[:5])) if found.best.settings else None
own = found.rows([found.own])[0] if found.own is not None else None
with pl.Config(tbl_cols=-1, tbl_width_chars=160):
    print(found.best.why if top is None else top.select(SHOWN))
    print("the run's own policy is not in the grid" if own is None else pl.DataFrame([own]).select(SHOWN))

# %% [markdown]
# ## Precision against recall
#
# A dot is a setting; the line follows the scores of the best one from the highest down. A dot can lie above the line: a
# claim that is refuted as well is contested, however high its score. Beside it: what share of the claims accepted as
# supported by their scores is wrong, by how many are accepted.

# %%
curves = shown("precision_recall", curves_picture(found.table, found.ranking, best))

# %% [markdown]
# ## Recall over the grid
#
# White cells lack pairs. A grid of one threshold is a line instead.

# %%
over_the_grid = heat_picture(found.table, found.axes, spec.select) or line_picture(found.table, found.axes)
heat = shown("grid", over_the_grid)
