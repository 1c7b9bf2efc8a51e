package rivals

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// S3 is an S3 store on a loopback port: versitygw on a directory, which `make bin/versitygw` builds. It does not sync. Its bucket is called tutti.
type S3 struct {
	Endpoint    string
	Credentials string // the file with the keys

	proc *process
}

// StartS3 starts a store below dir.
func StartS3(ctx context.Context, dir string) (*S3, error) {
	program, err := filepath.Abs(filepath.Join("bin", "versitygw"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(program); err != nil {
		return nil, &MissingError{Program: program, Install: "make bin/versitygw"}
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	const key, secret = "tuttibench", "not-a-secret-of-anybody"
	s := &S3{Endpoint: "http://127.0.0.1:" + strconv.Itoa(port), Credentials: filepath.Join(dir, "s3-credentials")}
	content := filepath.Join(dir, "s3")
	if err := os.MkdirAll(filepath.Join(content, "tutti"), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.Credentials, fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", key, secret), 0o600); err != nil {
		return nil, err
	}
	s.proc, err = start(ctx, command{
		path: program, dir: dir, log: filepath.Join(dir, "s3.log"),
		env:  append(os.Environ(), "ROOT_ACCESS_KEY="+key, "ROOT_SECRET_KEY="+secret),
		args: []string{"--quiet", "--health", "/health", "--port", "127.0.0.1:" + strconv.Itoa(port), "posix", content},
	})
	if err != nil {
		return nil, err
	}
	if err := s.proc.waitFor(ctx, func(ctx context.Context) bool { return accepts(ctx, port) }); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Usage is the process's.
func (s *S3) Usage() (measure.Usage, error) { return s.proc.usage() }

// Stop ends the store.
func (s *S3) Stop() error { return s.proc.stop(syscall.SIGTERM) }
