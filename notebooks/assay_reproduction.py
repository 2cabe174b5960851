# %% [markdown]
# # A published assay, reproduced line by line
#
# guards44: 44 authored cases about guards and exact relations, published with the scores of its model. The cases are
# decided anew from those scores, and every published figure, status and digest stands beside ours. `ASSAY_DIR` names
# the folder with `registration.json` and `scores.jsonl`; without it the one in `../shared/data` beside the repository.
# That the cohort was looked at goes into the ledger that `LEDGER` names, else `runs/assays.jsonl`.

# %%
import json
import os
from pathlib import Path

from omegaconf import OmegaConf
from pictures import output_folder, shown

import conf
from verifier.assays.compare import compare
from verifier.assays.reproducing import PublishedAssay, reproduce
from verifier.assays.show import comparison_table, gates_table, lines_table
from verifier.metrics import measure
from verifier.report.pictures import confusion_picture
from verifier.terminal import console

CONF = Path(conf.__file__).parent
folder = Path(os.environ.get("ASSAY_DIR") or CONF.parents[1] / "shared" / "data" / "claim-verifier" / "guards44")
ledger = Path(os.environ.get("LEDGER", "runs/assays.jsonl"))
if not (folder / "registration.json").is_file():
    raise SystemExit(f"{folder} has no registration.json: name the folder of the assay in ASSAY_DIR")

# %%
published = OmegaConf.load(CONF / "assay" / "guards44.yaml")
published.folder = str(folder)
fields = OmegaConf.to_container(published, resolve=True)
assay = PublishedAssay(**{name: value for name, value in fields.items() if name != "folder"})
found = reproduce(assay, ledger)

# %% [markdown]
# ## Every figure
#
# Published, ours, and whether they are equal. A figure that one of the two lacks differs.

# %%
console.print(lines_table(found))
print(f"{len(found.lines) - len(found.differences)} of {len(found.lines)} figures are equal")

# %% [markdown]
# ## The gates

# %%
console.print(gates_table(found.gates))

# %% [markdown]
# ## Labels against statuses

# %%
metrics = measure([case.status for case in found.cases], [case.label for case in found.cases])
confusion = shown("confusion", confusion_picture(metrics.confusion if metrics else {}))
for case in found.cases:
    if not case.as_expected:
        print(f"{case.case_id}: {case.label} expected, decided {case.status}")

# %% [markdown]
# ## One changed score
#
# The same again with one score of one case put below the threshold. The reproduction tells what no longer equals what
# was published, and the comparison tells which status and which scores are behind it.

# %%
CHANGED_CASE, CHANGED_SCORES = "preserve_attempt", [0.5, 0.25, 0.25]
records = [json.loads(line) for line in Path(assay.scores).read_text("utf-8").splitlines() if line.strip()]
changed_record = next(record for record in records if record["id"] == CHANGED_CASE)
changed_record["groups"][0][1] = CHANGED_SCORES
changed_file = output_folder() / "changed_scores.jsonl"
changed_file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")

changed = reproduce(assay.model_copy(update={"scores": str(changed_file)}), ledger)
comparison = compare(found.cases, changed.cases)
print(f"{len(changed.differences)} figures differ: {', '.join(line.name for line in changed.differences)}")
console.print(comparison_table(comparison))
