package ruby

import (
	"context"
	"os/exec"
	"slices"
	"time"
)

// jitArgs switch Ruby's just-in-time compiler on. It takes a quarter off a
// compile's CPU. Machine code that the zygote makes while it learns is shared by
// its workers. Ruby 3.1 touches all of the memory it is given for code, and gets
// slower than without when that is used up: 8 MB just do for a dozen modules.
// Only what is called very often is worth it: at Ruby's own threshold of ten calls
// a small catalog costs 59 ms of CPU instead of 33, at this one 36.
var jitArgs = []string{"--yjit", "--yjit-exec-mem-size=32", "--yjit-call-threshold=20000"}

// jitTimeout bounds the question whether an interpreter has it.
const jitTimeout = time.Minute

// jit gives the arguments that switch the compiler on; none for a Ruby without.
func jit(ctx context.Context, interpreter, home string) []string {
	ctx, cancel := context.WithTimeout(ctx, jitTimeout)
	defer cancel()
	args := append(slices.Clip(jitArgs), "--disable=gems", "-e", "exit RubyVM::YJIT.enabled?")
	cmd := exec.CommandContext(ctx, interpreter, args...) //nolint:gosec // the interpreter is the operator's choice
	cmd.Env = environ(home)
	if cmd.Run() != nil {
		return nil
	}
	return jitArgs
}
