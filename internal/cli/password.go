package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/tutti-project/tutti/internal/fault"
)

// passwords asks for one secret after the other, without showing them; or reads
// them from standard input, one line each. They are never arguments: those are
// seen by everybody on the machine.
func (a *app) passwords(stdin bool, prompts ...string) ([]string, error) {
	if stdin {
		return readLines(a.system.In, len(prompts))
	}
	terminal, ok := a.system.In.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return nil, usageError{fault.New(fault.Invalid, "there is no terminal to ask for a password at; give it on standard input, with --password-stdin")}
	}
	var secrets []string
	for _, prompt := range prompts {
		_, _ = fmt.Fprint(a.system.Err, prompt+": ")
		secret, err := term.ReadPassword(int(terminal.Fd()))
		_, _ = fmt.Fprintln(a.system.Err)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "no password was given")
		}
		secrets = append(secrets, string(secret))
	}
	return secrets, nil
}

// freshPassword asks for a new password twice, after those of the other prompts.
func (a *app) freshPassword(stdin bool, user string, before ...string) (secrets []string, err error) {
	prompts := append(before, "New password of "+user)
	if stdin {
		return a.passwords(stdin, prompts...)
	}
	secrets, err = a.passwords(stdin, append(prompts, "Once more")...)
	if err != nil {
		return nil, err
	}
	n := len(prompts)
	if secrets[n-1] != secrets[n] {
		return nil, usageError{fault.New(fault.Invalid, "the new password was not the same twice")}
	}
	return secrets[:n], nil
}

// maxLine is the longest line that is read as a password.
const maxLine = 4096

// readLines reads n lines; each must be there and not empty.
func readLines(in io.Reader, n int) (lines []string, err error) {
	reader := bufio.NewReader(io.LimitReader(in, int64(n*maxLine)))
	for range n {
		line, err := reader.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return nil, usageError{fault.New(fault.Invalid, "standard input must hold %d line(s), each a password", n)}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}
