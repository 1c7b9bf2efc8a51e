// Command tutti is the open control plane for Puppet and OpenVox fleets: server,
// node agent and command line in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/tutti-project/tutti/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends us without waiting
	code := cli.Run(ctx, os.Args[1:], cli.System{
		Name: strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"), In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ(), Width: width(os.Stdout),
		ErrWidth: width(os.Stderr), Asks: term.IsTerminal(int(os.Stdin.Fd())), Interrupts: interrupts,
	})
	stop()
	os.Exit(code)
}

// width of a terminal; 0 for what is none.
func width(file *os.File) int {
	columns, _, _ := term.GetSize(int(file.Fd()))
	return columns
}

// interrupts hears of each Ctrl-C.
func interrupts() (<-chan os.Signal, func()) {
	each := make(chan os.Signal, 2)
	signal.Notify(each, os.Interrupt)
	return each, func() { signal.Stop(each) }
}
