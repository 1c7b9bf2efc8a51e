package rivals

import (
	"context"
	"crypto/tls"
	"fmt"
	"os/exec"

	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// Target is a server under test.
type Target interface {
	// Name is how reports call it.
	Name() string
	// Version is what the program says of itself.
	Version(ctx context.Context) string
	// URL is scheme, host and port.
	URL() string
	// Client gives the TLS settings of a client with the certificate of one node;
	// nil for a server that speaks clear text.
	Client(ctx context.Context, certname string) (*tls.Config, error)
	// Usage is the whole process tree's.
	Usage() (measure.Usage, error)
	// Stop ends it and waits until all of it is gone. It may be called twice.
	Stop() error
}

// MissingError says that a program is not installed, and what installs it.
type MissingError struct {
	Program string
	Install string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not installed; install it with: %s", e.Program, e.Install)
}

// need finds a program or a file that a package brings.
func need(program, debianPackage string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", &MissingError{Program: program, Install: "apt-get install --no-install-recommends " + debianPackage}
	}
	return path, nil
}
