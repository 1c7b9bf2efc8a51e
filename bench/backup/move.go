package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
	"github.com/tutti-project/tutti/internal/server"
)

// away is where the server moves to.
type away struct {
	postgres *rivals.Postgres
	s3       *rivals.S3
	settings string // the configuration file
}

func (a *away) stop() {
	if a == nil {
		return
	}
	if a.postgres != nil {
		_ = a.postgres.Stop()
	}
	if a.s3 != nil {
		_ = a.s3.Stop()
	}
}

// there moves the server from SQLite and its directory to PostgreSQL and S3, while facts come until it stops.
func (b *bench) there(ctx context.Context) (measure.Row, error) {
	b.away = &away{settings: filepath.Join(b.dir, "away.yaml")}
	var err error
	if b.away.postgres, err = rivals.StartPostgres(ctx, filepath.Join(b.dir, "away")); err != nil {
		return measure.Row{}, err
	}
	if err := b.away.postgres.MakeDatabase(ctx, "tutti"); err != nil {
		return measure.Row{}, err
	}
	if b.away.s3, err = rivals.StartS3(ctx, b.dir); err != nil {
		return measure.Row{}, err
	}
	text := fmt.Sprintf("database: %s\nblobs: s3://tutti/content\nblobs_endpoint: %s\nblobs_credentials: %s\n",
		b.away.postgres.URL("tutti"), b.away.s3.Endpoint, b.away.s3.Credentials)
	if err := os.WriteFile(b.away.settings, []byte(text), 0o600); err != nil {
		return measure.Row{}, err
	}
	figures, err := b.move(ctx, append([]string{"--config", b.away.settings}, rivals.AsFastAsItCan...), "move", b.away.settings, "--data", b.data(), "-o", "json")
	if err != nil {
		return measure.Row{}, err
	}
	size, err := b.away.postgres.Bytes(ctx, "tutti")
	figures["database_mb"] = mb(size)
	return measure.Row{Server: "tutti", Case: thereCase, Figures: figures}, err
}

// back moves it back.
func (b *bench) back(ctx context.Context) (measure.Row, error) {
	home := filepath.Join(b.dir, "home.yaml")
	if err := errors.Join(os.WriteFile(home, []byte("log_level: info\n"), 0o600), os.Remove(filepath.Join(b.data(), "tutti.db"))); err != nil {
		return measure.Row{}, err
	}
	figures, err := b.move(ctx, rivals.AsFastAsItCan, "move", home, "--config", b.away.settings, "--data", b.data(), "-o", "json")
	if err != nil {
		return measure.Row{}, err
	}
	size, err := diskBytes(filepath.Join(b.data(), "tutti.db"))
	figures["database_mb"] = mb(size)
	return measure.Row{Server: "tutti", Case: backCase, Figures: figures}, err
}

// move runs the command while the server runs, stops it when the command says so, and starts it with other arguments when it has ended.
func (b *bench) move(ctx context.Context, then []string, args ...string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, b.binary, args...) //nolint:gosec // our own binary and arguments
	var out bytes.Buffer
	said := &stopsAt{word: "Stop the server now", there: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &out, said
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return nil, fmt.Errorf("tutti %s: it ended before the server was stopped: %w\n%s", strings.Join(args, " "), err, said.text())
	case <-said.there:
	}
	asked := time.Now()
	if err := b.tutti.Stop(); err != nil {
		return nil, err
	}
	if err := <-ended; err != nil {
		return nil, fmt.Errorf("tutti %s: %w\n%s", strings.Join(args, " "), err, said.text())
	}
	took := time.Since(begin)
	b.tutti.Use(then...)
	if err := b.tutti.Restart(ctx); err != nil {
		return nil, err
	}
	away := time.Since(asked)
	var moved server.Moved
	if err := json.Unmarshal(out.Bytes(), &moved); err != nil {
		return nil, err
	}
	if moved.Records == nil || moved.Content == nil || moved.Records.Rows < int64(b.Nodes) || moved.Content.Blobs < int64(b.Nodes) {
		return nil, fmt.Errorf("of %d nodes were moved: %s", b.Nodes, out.String())
	}
	fmt.Fprintf(os.Stderr, "backup: tutti move: %.1f s, stopped for %.1f s\n", took.Seconds(), moved.Stopped)
	figures := map[string]float64{
		"rows": float64(moved.Records.Rows), "blobs": float64(moved.Content.Blobs),
		"new_blobs": float64(moved.Content.New), "late_blobs": float64(moved.Content.Late),
		"seconds": took.Seconds(), "stopped_s": moved.Stopped, "away_s": away.Seconds(),
		"cpu_s": (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		figures["peak_rss_mb"] = float64(usage.Maxrss) * 1024 / 1e6
	}
	return figures, nil
}

// stopsAt is standard error of a command: it says when a word has come.
type stopsAt struct {
	word  string
	there chan struct{} // closed when it has

	mu  sync.Mutex
	all strings.Builder
	has bool
}

// Write implements io.Writer.
func (s *stopsAt) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Write(p)
	if !s.has && strings.Contains(s.all.String(), s.word) {
		s.has = true
		close(s.there)
	}
	return len(p), nil
}

func (s *stopsAt) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}
