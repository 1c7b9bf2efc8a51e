// Command tutti is the open control plane for Puppet and OpenVox fleets: server,
// node agent and command line in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/tutti-project/tutti/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)                     // a second Ctrl-C ends us without waiting
	width, _, _ := term.GetSize(int(os.Stdout.Fd())) // 0 for what is no terminal
	code := cli.Run(ctx, os.Args[1:], cli.System{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ(), Width: width})
	stop()
	os.Exit(code)
}
