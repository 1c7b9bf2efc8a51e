// Command tutti is the open control plane for Puppet and OpenVox fleets: server,
// node agent and command line in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tutti-project/tutti/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends us without waiting
	code := cli.Run(ctx, os.Args[1:], cli.System{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()})
	stop()
	os.Exit(code)
}
