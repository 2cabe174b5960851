# %% [markdown]
# # Error analysis of a run
#
# Where does a finished run support what it should not, what did the guards hold back, and which claims would another
# threshold decide otherwise? `RUN_DIR` names the run directory; without it a third of the demo corpus is verified here
# first. `NOTEBOOK_OUT` names the folder for the pictures. A run of a sealed cohort is refused, by the ledger that
# `LEDGER` names, else `runs/assays.jsonl`.

# %%
import numpy as np
import polars as pl
from pictures import shown
from small_run import run_directory

from verifier.report.examples import read_examples
from verifier.report.figures import BINS, gather
from verifier.report.pictures import claim_scores_picture, verdicts_picture
from verifier.report.rendering import read_run
from verifier.results import read_results, scored_pairs

run_dir = run_directory()
policy = read_run(run_dir)["identity"]["policy"]
figures = gather(run_dir)
print(f"{run_dir}: {figures.claims} claims, {figures.decided} decided; {dict(figures.verdicts)}")
print(figures.metrics.binary if figures.metrics else "no claim has a label")

# %%
record = pl.col("record").struct
claims = (
    read_results(run_dir)
    .filter(pl.col("outcome") == "decided")
    .select(
        "row_id",
        "claim_id",
        "category",
        "label",
        "status",
        "support",
        record.field("supporting_basis"),
        record.field("limitations"),
    )
)
labelled = claims.filter(pl.col("label").is_not_null())

# %% [markdown]
# ## False supports by category
#
# Claims decided *supported* whose label is something else, beside all claims of the category that should not be
# supported.

# %%
should_not = labelled.filter(pl.col("label") != "supported")
false_supports = should_not.filter(pl.col("status") == "supported")
by_category = (
    should_not.group_by("category")
    .agg(claims=pl.len(), false_supports=(pl.col("status") == "supported").sum())
    .with_columns(rate=pl.col("false_supports") / pl.col("claims"))
    .sort("false_supports", "rate", "category", descending=[True, True, False])
)
with pl.Config(tbl_rows=-1):
    print(by_category)
counts = by_category.filter(pl.col("false_supports") > 0).with_columns(pl.col("category").fill_null("(none)"))
category_counts = dict(counts.select("category", "false_supports").iter_rows())
categories = shown("false_supports", verdicts_picture(category_counts, "false supports"))

# %% [markdown]
# The first of them with what they were supported by.

# %%
EXAMPLES = 5
for examples in read_examples(run_dir, false_supports["row_id"].head(EXAMPLES).to_list()).values():
    for example in examples:
        print(f"\n{example['claim_id']} ({example['category']}, {example['label']}): {example['claim']}")
        for passage in example["passages"]:
            print(f"  [{passage['role'] or 'not used'}] {passage['text']}")

# %% [markdown]
# ## Guards that fired
#
# A limitation in the record says that a score passed the threshold and a guard held it back. The guard was right where
# the label is neither *contested* nor what the score spoke for; where it was not, it had a cost if nothing else decided
# the claim. A localized basis means that a passage was held back, and the rest of its segments supported the claim.

# %%
SPOKE_FOR = {"uncorroborated_model_entailment": "supported", "uncorroborated_model_contradiction": "refuted"}
fired = (
    labelled.explode("limitations")
    .filter(pl.col("limitations").is_in(list(SPOKE_FOR)))
    .rename({"limitations": "guard"})
    .with_columns(
        right=(pl.col("label") != "contested") & (pl.col("label") != pl.col("guard").replace_strict(SPOKE_FOR))
    )
    .with_columns(cost=~pl.col("right") & (pl.col("status") == "insufficient"))
)
guards = (
    fired.group_by("guard").agg(fired=pl.len(), right=pl.col("right").sum(), cost=pl.col("cost").sum()).sort("guard")
)
localized = labelled.filter(pl.col("supporting_basis") == "localized_model_entailment")
with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=60):
    print(guards)
    print(fired.group_by("guard", "category").len("fired").sort("fired", "category", descending=[True, False]))
right = localized.filter(pl.col("label") == "supported")
print(f"{len(localized)} claims supported by a localized recheck, {len(right)} of them rightly")

# %% [markdown]
# ## Scores near the threshold
#
# The largest entailment and contradiction of a claim over all pairs that were scored for it, or the support that a
# method of support found, beside the threshold of the run. A claim within `NEAR` of it may be decided otherwise by
# another threshold, or by the same model on another machine.

# %%
NEAR = 0.05
SCORE_OF = {
    "entailment_threshold": "entailment",
    "contradiction_threshold": "contradiction",
    "threshold": "support",
    "supported": "support",
}
thresholds = {score: policy[name] for name, score in SCORE_OF.items() if name in policy}
of_pairs = scored_pairs(run_dir).group_by("row_id").agg(pl.col("entailment", "contradiction").max())
strongest = (
    claims.join(of_pairs, "row_id", how="left")
    .unpivot(thresholds, index=["claim_id", "category", "label", "status"], variable_name="score")
    .filter(pl.col("value").is_finite())
    .with_columns(distance=pl.col("value") - pl.col("score").replace_strict(thresholds, return_dtype=pl.Float64))
)
near = strongest.filter(pl.col("distance").abs() <= NEAR).sort(pl.col("distance").abs(), "claim_id", "score")
with pl.Config(tbl_rows=20, tbl_cols=-1, tbl_width_chars=120):
    print(near)

# %% [markdown]
# The distribution of those scores by label: how far the threshold parts what it is meant to part.

# %%
for score, threshold in thresholds.items():
    of_score = strongest.filter((pl.col("score") == score) & pl.col("label").is_not_null()).sort("label")
    histograms = {
        label: np.histogram(own["value"], BINS, (0, 1))[0].tolist()
        for (label,), own in of_score.group_by("label", maintain_order=True)
    }
    shown(f"{score}_by_label", claim_scores_picture(histograms, {"threshold": threshold}, score))
