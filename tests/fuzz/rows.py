"""Good rows of every input form, with hostile texts in them."""

from hypothesis import strategies as st

from tests.fuzz.strategies import fields, safe_text

filled = safe_text.map(lambda text: text if text.strip() else "x")
names = st.one_of(st.sampled_from(["a", "x", "m1", "m2", "../../evil", "s3://u:p@h/k", "=1+1"]), filled)
status = st.sampled_from(["supported", "refuted", "contested", "insufficient", "incomplete", None])

evidence = fields(
    reference=names,
    text=filled,
    memory_id=st.sampled_from([None, "5211a7d2-cf39-4c7c-8bbc-4f762448d294"]),
    source_type=st.sampled_from([None, "tool_output"]),
    epistemic_type=st.sampled_from([None, "hypothetical", "deprecated"]),
    event_time=st.sampled_from([None, "2026-01-02T03:04:05Z", "1", "9999-12-31T23:59:59+14:00"]),
)
claims = fields(
    claim_id=names,
    claim=filled,
    evidence=st.lists(evidence, max_size=3),
    requires_complete_set=st.booleans(),
    label=status,
    category=safe_text,
)
bundle = fields(
    claim_id=names,
    claim=filled,
    context=st.lists(names.map(lambda name: f'"{name}" [{name}]'), min_size=1, max_size=3).map(" ".join),
    evidence=st.lists(evidence, max_size=3),
    evidence_refs=st.one_of(st.none(), st.lists(names, max_size=2)),
)
cases = fields(
    id=names, category=safe_text, claim=filled, expected_status=status, evidence=st.lists(evidence, max_size=2)
)
registration = fields(protocol=fields(cases=st.lists(cases, max_size=2)))
wice = fields(
    label=st.sampled_from(["supported", "partially_supported", "not_supported"]),
    claim=filled,
    evidence=st.lists(filled, max_size=3),
    meta=fields(id=names),
)
joined_claims = fields(claim_id=names, claim=filled, evidence_set=st.sampled_from(["a", "b", "x"]), label=status)
joined_evidence = st.tuples(evidence, st.sampled_from(["a", "b"])).map(lambda two: {**two[0], "evidence_set": two[1]})
_sentences = fields(id=st.sampled_from(["s1", "s2", "x"]), text=filled)
cited = fields(
    answer_id=names,
    sentences=st.lists(
        fields(text=filled, supporting_sentence_ids=st.lists(st.sampled_from(["s1", "s2", "x"]), max_size=2)),
        max_size=2,
    ),
    documents=st.lists(
        fields(
            doc_id=names, sentences=st.lists(fields(id=st.sampled_from(["s1", "s2", "x"]), text=filled), max_size=2)
        ),
        max_size=2,
    ),
)
answers = fields(
    answer_id=names,
    answer=safe_text,
    spans=st.lists(
        fields(span_id=names, text=filled, markers=st.lists(filled, max_size=2), masked=st.just([[0, 1]])), max_size=2
    ),
    claims=st.one_of(
        st.none(),
        st.lists(fields(text=filled, draft_span=st.sampled_from([[0, 1], [1, 0], [0, 99]])), max_size=2),
    ),
    request=st.dictionaries(safe_text, safe_text, max_size=2),
    scope=st.one_of(st.none(), names),
    usage_input_tokens=st.integers(0, 2**63),
)
corpus = fields(passage_id=names, text=filled, kind=names, scope=st.one_of(st.none(), names))

FORMS = {
    "claims": claims,
    "bundle": bundle,
    "registration": registration,
    "wice": wice,
    "cited": cited,
    "answers": answers,
    "corpus": corpus,
}
