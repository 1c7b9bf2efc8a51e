package ruby

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/cell"
)

// controlTimeout bounds what a zygote does at once: forking, reaping. On a machine that
// swaps or is overbooked that takes long, and ending the zygote would only add to its load.
const controlTimeout = time.Minute

// startTimeout bounds how long loading Puppet and the main manifest may take.
const startTimeout = 2 * time.Minute

// gcHeadroomBytes is how much a worker grows before its garbage collector runs in the middle of a compile. A worker looks ten times a second, and code
// makes 100 MB of garbage between two looks: where the limit of memory is lower than gcRoomBytes, that would count as hunger, and Ruby collects as it likes.
const (
	gcHeadroomBytes = 160 << 20
	gcRoomBytes     = 512 << 20
)

// gcHeadroom is that of a worker with a limit of memory; 0 when Ruby decides.
func gcHeadroom(limit int64) int64 {
	if limit < gcRoomBytes {
		return 0
	}
	return gcHeadroomBytes
}

// zygote is a warm Ruby process, seen from Go.
type zygote struct {
	cfg     Config
	engine  string // what it is, as Pool.Engine says
	known   compile.Inventory
	key     key
	dir     string
	process *cell.Process
	control *net.UnixConn
	reader  *bufio.Reader
	turn    chan struct{} // holds one token: who has it speaks on control
	ended   chan struct{} // closed when the process has ended

	children []int // the workers that it has not reaped; who has the turn may use it

	lifeline *os.File // its standard input; closing it ends the zygote and its workers
	output   *os.File // what it and its workers print
	drained  chan struct{}
	printed  atomic.Pointer[string] // the first line of output

	lessons   atomic.Int64 // orders that it learned from
	learning  atomic.Bool
	dismissed atomic.Bool // it was ended because nobody needs it
}

// spawn starts the process. The caller must call kill and wait for ended.
func spawn(ctx context.Context, cfg Config, i *installation, known compile.Inventory, k key, dir, root string, log *slog.Logger) (*zygote, error) {
	control, theirs, err := socketpair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	defer func() { _ = stdin.Close() }()
	output, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, control.Close(), lifeline.Close())
	}
	defer func() { _ = stdout.Close() }()

	// Not CommandContext: a keeper ends it, after its workers.
	//nolint:noctx,gosec // see above; the interpreter is the operator's choice
	cmd := exec.Command(i.interpreter, slices.Concat(cfg.load(), i.jit, []string{filepath.Join(cfg.codeDir(), "main.rb")})...)
	grants := cfg.grants(k.environment)
	cmd.Dir, cmd.Env = dir, grants.environ(dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stdout
	cmd.ExtraFiles = []*os.File{theirs}
	process, err := cfg.Keeper.Start(cmd, cfg.spec(i, grants, dir, root, cfg.codeDir()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start ruby: %w", err), control.Close(), lifeline.Close(), output.Close())
	}
	z := &zygote{
		cfg: cfg, engine: i.name, known: known, key: k, dir: dir, process: process, control: control, reader: bufio.NewReaderSize(control, 16<<10),
		turn: make(chan struct{}, 1), ended: make(chan struct{}),
		lifeline: lifeline, output: output, drained: make(chan struct{}),
	}
	z.turn <- struct{}{}
	go z.drain(ctx, log) // ends when clean closes output
	go z.wait()          // ends when kill was called, or before
	return z, nil
}

// environ is all that Ruby, and what generate() starts, sees of our environment.
func environ(home string) []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/puppetlabs/bin",
		"HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
		// One arena: workers are single-threaded, more arenas only scatter pages.
		"MALLOC_ARENA_MAX=1",
	}
	if zone, set := os.LookupEnv("TZ"); set {
		env = append(env, "TZ="+zone)
	}
	return env
}

func (z *zygote) pid() int { return z.process.PID() }

func (z *zygote) wait() {
	_ = z.process.Wait()
	close(z.ended)
}

// drain logs what Ruby prints, in bounded pieces.
func (z *zygote) drain(ctx context.Context, log *slog.Logger) {
	defer close(z.drained)
	lines := bufio.NewReaderSize(z.output, 1024)
	for {
		line, err := lines.ReadSlice('\n')
		if text := string(bytes.TrimSpace(line)); text != "" {
			z.printed.CompareAndSwap(nil, &text)
			log.DebugContext(ctx, "ruby printed", "pid", z.pid(), "text", text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// kill ends the process, and with it its workers: its cell ends, or they notice. It may be called repeatedly, and
// only the keeper's clean waits for the end.
func (z *zygote) kill() {
	select {
	case <-z.ended:
	default:
		z.process.Kill()
	}
	_ = z.lifeline.Close()
	_ = z.control.Close()
}

func (z *zygote) alive() bool {
	select {
	case <-z.ended:
		return false
	default:
		return true
	}
}

// greet tells the zygote what it is for, and waits until it has loaded the code.
func (z *zygote) greet(ctx context.Context, root string) error {
	defer context.AfterFunc(ctx, z.kill)()
	k := z.key
	reply, err := z.call(ctx, startTimeout, request{
		Op: "hello", Environment: string(k.environment), Version: string(k.version), Root: root, Dir: z.dir,
		Limits: &limits{
			RequestBytes: 2*z.cfg.MaxOrderBytes + 1<<20, CatalogBytes: z.cfg.MaxCatalogBytes,
			MemoryBytes: z.cfg.MemoryBytes, GCHeadroomBytes: gcHeadroom(z.cfg.MemoryBytes),
			AnswerBytes: z.cfg.MaxAnswerBytes + 1<<20,
		},
		Settings: &z.cfg.Settings,
	})
	if err != nil {
		return fault.Wrap(fault.Unavailable, z.obituary(err), "the compiler for environment %s did not start", k.environment)
	}
	if reply.Error != "" {
		return &compile.Error{Cause: compile.CauseCode, Message: reply.Error}
	}
	z.process.Clear(z.process.Program()) // nobody speaks with it yet
	return nil
}

// obituary ends a zygote that did not start, and says what it had to say.
func (z *zygote) obituary(err error) error {
	z.kill()
	<-z.ended
	select {
	case <-z.drained:
	case <-time.After(time.Second):
	}
	// A new error, no wrapping: what cannot start is not tried again at once.
	if text := z.printed.Load(); text != nil {
		return errors.New(err.Error() + "; it printed: " + *text)
	}
	return errors.New(err.Error())
}

// teach makes the zygote compile orders and keep what they loaded. They ask the
// inventory as all orders do: what they find may lead to other code.
func (z *zygote) teach(ctx context.Context, orders []compile.Order) error {
	ctx, cancel := context.WithTimeout(ctx, z.cfg.WarmTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, z.kill)()
	wire := make([]*wireOrder, len(orders))
	talk := newAsking(z.known, z.cfg, z.control, orders...)
	for i, order := range orders {
		wire[i] = toWire(order)
	}
	var reply *controlReply
	err := z.speak(ctx, z.cfg.WarmTimeout, func() (err error) {
		if err = writeRequest(z.control, &request{Op: "warm", Orders: wire}); err != nil {
			return err
		}
		reply, err = hear[controlReply](z.reader, func(m *message) error { return talk.answer(ctx, m) })
		z.process.Clear(z.process.Program(), z.children...) // it forks nobody meanwhile
		return err
	})
	switch {
	case err != nil:
		return err
	case reply.Error != "":
		return errors.New(reply.Error)
	default:
		z.lessons.Add(1)
		return nil
	}
}

// fork makes a worker.
func (z *zygote) fork(ctx context.Context) (*worker, error) {
	ours, theirs, err := socketpair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	lessons := z.lessons.Load()
	var pid int
	err = z.speak(ctx, controlTimeout, func() error {
		if _, err := z.exchange(&request{Op: "fork"}); err != nil {
			return err
		}
		rights := syscall.UnixRights(int(theirs.Fd()))
		if _, _, err := z.control.WriteMsgUnix([]byte{0}, rights, nil); err != nil {
			return err
		}
		reply, err := z.exchange(nil)
		if err == nil {
			pid = reply.PID
			z.children = append(z.children, pid)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	return newWorker(z, pid, ours, lessons), nil
}

// reap makes the zygote kill a worker's process group, if it still is its child,
// and lets its number go.
func (z *zygote) reap(ctx context.Context, pid int) error {
	return z.speak(ctx, controlTimeout, func() error {
		_, err := z.exchange(&request{Op: "reap", PID: pid})
		z.children = slices.DeleteFunc(z.children, func(child int) bool { return child == pid })
		return err
	})
}

// call sends one request and waits for its answer.
func (z *zygote) call(ctx context.Context, timeout time.Duration, req request) (*controlReply, error) {
	var reply *controlReply
	err := z.speak(ctx, timeout, func() (err error) {
		reply, err = z.exchange(&req)
		return err
	})
	return reply, err
}

// speak has a turn on the control socket; ctx bounds the wait for it. A
// conversation that breaks leaves the zygote useless: it is killed.
func (z *zygote) speak(ctx context.Context, timeout time.Duration, say func() error) error {
	select {
	case <-z.turn:
		defer func() { z.turn <- struct{}{} }()
	case <-z.ended:
		return &goneError{z: z, err: errors.New("the zygote has ended")}
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := z.control.SetDeadline(time.Now().Add(timeout)); err != nil {
		return &goneError{z: z, err: err}
	}
	if err := say(); err != nil {
		z.kill()
		return &goneError{z: z, err: err}
	}
	return nil
}

// exchange writes req, if any, and reads an answer.
func (z *zygote) exchange(req *request) (*controlReply, error) {
	if req != nil {
		if err := writeRequest(z.control, req); err != nil {
			return nil, err
		}
	}
	return hear[controlReply](z.reader, func(*message) error { return errors.New("ruby asks out of turn") })
}

func writeRequest(w io.Writer, req *request) error {
	req.V = protocolVersion
	var line bytes.Buffer
	encoder := json.NewEncoder(&line) // it ends the line
	encoder.SetEscapeHTML(false)      // which could make facts six times as long
	if err := encoder.Encode(req); err != nil {
		return err
	}
	_, err := w.Write(line.Bytes())
	return err
}
