package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofrs/flock"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

// Config is how programs are run. Zero limits mean the defaults.
type Config struct {
	// Watcher is the command line that ends in Watch; the place is added to it.
	Watcher        []string
	MaxOutputBytes int64         // of a program's standard output and error together; 8 MB
	Grace          time.Duration // between asking and killing; 10 seconds
}

const (
	// answering is how long a watcher may take to say that it is ready.
	answering = time.Minute
	// looking is how often a watcher is looked after that an earlier agent started.
	looking = 200 * time.Millisecond
)

// Runner starts watchers.
type Runner struct {
	cfg Config

	mu  sync.Mutex
	own map[string]chan struct{} // by place; closed when the watcher ended
}

var _ orders.Runner = (*Runner)(nil)

// New returns a Runner.
func New(cfg Config) *Runner {
	if cfg.MaxOutputBytes <= 0 {
		cfg.MaxOutputBytes = 8 << 20
	}
	if cfg.Grace <= 0 {
		cfg.Grace = 10 * time.Second
	}
	return &Runner{cfg: cfg, own: map[string]chan struct{}{}}
}

// order is what a watcher is told on its standard input.
type order struct {
	Path     string   `json:"path"`
	Args     []string `json:"args"`
	Env      []string `json:"env"`
	Input    []byte   `json:"input"`
	Dir      string   `json:"dir"`
	Timeout  int64    `json:"timeout"` // in milliseconds, as is
	Grace    int64    `json:"grace"`
	MaxBytes int64    `json:"max_bytes"`
}

// logFile is where a watcher's own errors go.
const logFile = "watcher.log"

// Start implements orders.Runner.
func (r *Runner) Start(ctx context.Context, place string, c orders.Command) error {
	text, err := json.Marshal(order{
		Path: c.Path, Args: c.Args, Env: c.Env, Input: c.Input, Dir: c.Dir, Timeout: c.Timeout.Milliseconds(), Grace: r.cfg.Grace.Milliseconds(),
		MaxBytes: r.cfg.MaxOutputBytes,
	})
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the program's arguments or environment are no text")
	}
	log, err := os.OpenFile(filepath.Join(place, logFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the program cannot be watched over: %v", err)
	}
	defer func() { _ = log.Close() }()
	w, err := r.launch(place, log)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the program cannot be watched over: %v", err)
	}
	handed := make(chan error, 1)
	go r.attend(place, w, text, handed)
	timer := time.NewTimer(answering)
	defer timer.Stop()
	select {
	case err = <-handed:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = fmt.Errorf("the watcher did not answer in %s", answering)
	}
	if err == nil {
		return nil
	}
	_ = w.cmd.Process.Kill() // it has not got the whole order, so there is no program
	<-w.ended
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fault.Wrap(fault.Unavailable, err, "the program cannot be watched over: %s", why(err, log.Name()))
}

// watcher is a watcher that this process started.
type watcher struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ended chan struct{}
}

func (r *Runner) launch(place string, log *os.File) (*watcher, error) {
	line := append(append([]string{}, r.cfg.Watcher...), place)
	cmd := exec.Command(line[0], line[1:]...) //nolint:gosec,noctx // our own binary, which outlives every context
	cmd.Dir = filepath.Dir(place)
	cmd.Stderr = log
	cmd.SysProcAttr = ownSession()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &watcher{cmd: cmd, in: in, out: bufio.NewReader(out), ended: make(chan struct{})}
	r.mu.Lock()
	r.own[place] = w.ended
	r.mu.Unlock()
	return w, nil
}

// attend hands a watcher its order, and waits for it to end: it ends with its program.
func (r *Runner) attend(place string, w *watcher, order []byte, handed chan<- error) {
	handed <- w.hand(order)
	_ = w.cmd.Wait() // how it ended is in the files
	r.mu.Lock()
	if r.own[place] == w.ended {
		delete(r.own, place)
	}
	r.mu.Unlock()
	close(w.ended)
}

// hand waits until the watcher is ready, and gives it the order.
func (w *watcher) hand(order []byte) error {
	answer, err := w.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the watcher ended at once: %w", err)
	}
	if answer != ready {
		return errors.New(strings.TrimSpace(answer))
	}
	_, err = w.in.Write(order)
	return errors.Join(err, w.in.Close())
}

// why prefers a watcher's own last words.
func why(err error, log string) string {
	f, openErr := os.Open(log)
	if openErr != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	words, _ := io.ReadAll(io.LimitReader(f, 1000))
	return strings.TrimSpace(err.Error() + "\n" + string(words))
}

// Alive implements orders.Runner.
func (r *Runner) Alive(place string) bool {
	path := filepath.Join(place, orders.AliveFile)
	if _, err := os.Lstat(path); err != nil {
		return false
	}
	lock := flock.New(path)
	free, err := lock.TryRLock()
	_ = lock.Close()
	return err == nil && !free
}

// Wait implements orders.Runner.
func (r *Runner) Wait(ctx context.Context, place string) error {
	r.mu.Lock()
	ended := r.own[place]
	r.mu.Unlock()
	if ended != nil {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	tick := time.NewTicker(looking)
	defer tick.Stop()
	for r.Alive(place) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Stop implements orders.Runner.
func (r *Runner) Stop(place string) error {
	if !r.Alive(place) {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(place, orders.PIDFile))
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the program's watcher is not known")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return fault.New(fault.Unavailable, "the program's watcher is not known: its pid is %.20q", text)
	}
	if err := ask(pid, place); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fault.Wrap(fault.Unavailable, err, "the program's watcher cannot be told to stop it")
	}
	return nil
}
