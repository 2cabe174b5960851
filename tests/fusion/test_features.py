"""Features of texts that are read together: the words and numbers of each are those that it has alone."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from verifier.fusion import numeric_atoms, tokenize
from verifier.fusion.features import TextFeatures, tokens_of

odd = st.text(st.sampled_from(" \n\tab.,'’:;-_5٣Σςİße\u0301\u0345ा\u200d\u00adא東🇩🇪👍🏽"), max_size=12)
texts = st.lists(st.one_of(st.text(max_size=20), odd), min_size=1, max_size=5)


@given(texts)
@example(["a \u0345b", "a b"])
@example(["𝟓 5 0005", "5"])
def test_counts_are_those_of_the_tokenizer(texts: list[str]) -> None:
    features = TextFeatures.of(texts)
    vocabulary = sorted({token for text in texts for token in tokenize(text)})
    atoms = {text: set(numeric_atoms(tokenize(text))) for text in texts}
    found = features.units.toarray()[features.rows(texts)]
    assert features.tokens == len(vocabulary)
    for text, row in zip(texts, found, strict=True):
        counts = Counter(tokenize(text))
        assert row[: features.tokens].tolist() == [counts[token] for token in vocabulary]
        numbers = row[features.tokens :]
        assert set(numbers.tolist()) <= {0, 1} and numbers.sum() == len(atoms[text])
    shared = found[:, features.tokens :] @ found[:, features.tokens :].T
    assert shared.tolist() == [[len(atoms[one] & atoms[two]) for two in texts] for one in texts]


@given(texts, st.data())
def test_only_tokens_that_are_asked_for_are_counted(texts: list[str], data: st.DataObject) -> None:
    asked = data.draw(st.lists(st.sampled_from(texts)))
    whole, part = TextFeatures.of(texts), TextFeatures.of(texts, asked)
    vocabulary = sorted({token for text in texts for token in tokenize(text)})
    wanted = {token for text in asked for token in tokenize(text)}
    kept = [number for number, token in enumerate(vocabulary) if token in wanted]
    columns = [*kept, *range(whole.tokens, whole.units.shape[1])]
    np.testing.assert_array_equal(part.units.toarray(), whole.units.toarray()[:, columns])


@pytest.mark.parametrize(
    "chunk", ["", "...", '"Word",', "can't", "U.S.", "1,000.5;", "a_b", "_", "x:y", "(5)", "Σ", "-5"]
)
def test_a_word_between_marks_is_read_as_by_the_tokenizer(chunk: str) -> None:
    assert tokens_of(chunk) == tokenize(chunk)
