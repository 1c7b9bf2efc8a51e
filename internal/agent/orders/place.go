package orders

// The names of the files at a transaction's place on a disk: who keeps
// transactions and who runs programs meet there.
const (
	MetadataFile = "metadata" // JSON: who asked for what, when, and how it ended
	PIDFile      = "pid"      // of the process that watches over the program
	AliveFile    = "alive"    // locked by that process for as long as it lives
	StdoutFile   = "stdout"
	StderrFile   = "stderr"
	EndedFile    = "ended"    // why the program was ended before it ended by itself, if it was
	ExitFile     = "exitcode" // a number: written last, and all at once
)
