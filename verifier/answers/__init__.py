"""Generated answers: their claims checked against an evidence plan or a corpus, and what is delivered of them."""
