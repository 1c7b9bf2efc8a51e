package fleet

// Newest is which of the things with numbers are wanted that people made in environments: the newest first.
type Newest[S ~string] struct {
	Before      int64 // numbers below this; 0: from the newest
	Limit       int
	Environment Environment // empty: all
	States      []S         // none: all
}
