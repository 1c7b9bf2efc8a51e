package demo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// process is a `tutti` that runs beside the demo.
type process struct {
	cmd   *exec.Cmd
	log   *os.File
	ended chan error
}

// launch starts one. Its output goes to a file of the scratch directory.
func (s *stage) launch(name string, args ...string) (*process, error) {
	log, err := os.Create(filepath.Join(s.Dir, name+".log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.Binary, args...) //nolint:gosec,noctx // it is ended by stop, gently
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is ours to pass on
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	p := &process{cmd, log, make(chan error, 1)}
	go func() { p.ended <- cmd.Wait() }()
	return p, nil
}

// stop ends it and waits for it.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	err := <-p.ended
	p.ended <- err
	return errors.Join(err, p.log.Close())
}

// early is the error of a process that ended while it was waited for, with what it
// said; nil: it goes on.
func (p *process) early() error {
	select {
	case err := <-p.ended:
		p.ended <- err
		return fmt.Errorf("it ended: %w\n%s", errors.Join(err, errEnded), p.text())
	default:
		return nil
	}
}

var errEnded = errors.New("a process that the demo needs")

// text is what it said.
func (p *process) text() string {
	text, _ := os.ReadFile(p.log.Name())
	return string(text)
}
