package sim

import "fmt"

// Verdict is what the server says of one run.
type Verdict struct {
	Execution // the transaction is the run's id
	State     string
	ExitCode  *int // nil: none is known
}

// limits is how often a run in a final state may and must have been executed.
type limits struct{ least, most int }

// finals are the states in which a run ends. A run may time out, be killed or get lost before
// or after it began, lost only with its node's programs; one that succeeded or failed was executed, and ended.
var finals = map[string]limits{
	"succeeded": {1, 1}, "failed": {1, 1},
	"errored": {0, 1}, "timed_out": {0, 1}, "killed": {0, 1}, "lost": {0, 1},
	"refused": {0, 0}, "offline": {0, 0}, "skipped": {0, 0},
}

// Final says whether a run's state is one in which it stays.
func Final(state string) bool {
	_, final := finals[state]
	return final
}

// Judge compares what the server says of a run that is over with what its node did. The
// empty text is agreement.
func Judge(v Verdict, did Count) string {
	allowed, final := finals[v.State]
	switch {
	case !final:
		return fmt.Sprintf("%s on %s is not over: %s", v.Transaction, v.Node, v.State)
	case did.Begun > allowed.most:
		return fmt.Sprintf("%s on %s is %s and was executed %d times", v.Transaction, v.Node, v.State, did.Begun)
	case did.Begun < allowed.least:
		return fmt.Sprintf("%s on %s is %s and was never executed", v.Transaction, v.Node, v.State)
	case v.State == "lost" && !did.Vanished:
		return fmt.Sprintf("%s on %s is lost, and its node knows better", v.Transaction, v.Node)
	case allowed.least > 0 && did.Vanished:
		return fmt.Sprintf("%s on %s is %s and vanished on the node before its end", v.Transaction, v.Node, v.State)
	case v.State == "succeeded" && did.ExitCode != 0, v.State == "failed" && did.ExitCode == 0:
		return fmt.Sprintf("%s on %s is %s and ended with %d on the node", v.Transaction, v.Node, v.State, did.ExitCode)
	case allowed.least > 0 && v.ExitCode != nil && *v.ExitCode != did.ExitCode:
		return fmt.Sprintf("%s on %s ended with %d for the server, with %d on the node", v.Transaction, v.Node, *v.ExitCode, did.ExitCode)
	}
	return ""
}
