"""Reading, preparing and running a corpus: the only room that does input and output at scale."""
