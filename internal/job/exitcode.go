package job

import "strings"

// originalAgent is how pxp-agent calls itself, before the version of its library.
const originalAgent = "WebSocket++/"

// exitWords are the exit codes that pxp-agent makes up. It runs programs through a library which gives the number of the system's error
// as exit code when a program cannot be run, and the number of the signal when one was ended by a signal.
var exitWords = map[int]string{
	7: "the system does not run it: its arguments and environment are too long",
	8: "the system cannot run the file: it is no program, or has no first line that names its interpreter, such as #!/bin/sh",
	9: "it was killed (signal 9), by somebody or because the memory was full",
}

// explained is an event with words for an exit code that says nothing to people. A program can end with the same numbers by itself: one that
// could not be run has written nothing.
func (e Event) explained(agent string) Event {
	if e.What != Ended || e.State != RunFailed || e.Outcome.Puppet != nil || !strings.HasPrefix(agent, originalAgent) {
		return e
	}
	words := exitWords[e.Outcome.ExitCode]
	if words == "" || e.Outcome.ExitCode != 9 && e.Outcome.Output.Lines > 0 {
		return e
	}
	e.Reason += ": from pxp-agent that means that " + words + ", unless the program itself ended so"
	return e
}
