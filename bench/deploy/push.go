package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// pushed is how many files a push changes.
const pushed = 5

// pushes measures the time from a webhook to the end of the deploy that it leads to: fetched, checked, the environment's version.
func (b *bench) pushes(ctx context.Context) (measure.Row, error) {
	secret := filepath.Join(filepath.Dir(b.repo), "secret")
	if err := os.WriteFile(secret, []byte(hex.EncodeToString(make([]byte, 32))), 0o600); err != nil {
		return measure.Row{}, err
	}
	if _, err := b.git(ctx, "init", "--quiet", "--initial-branch=pushed"); err != nil {
		return measure.Row{}, err
	}
	if _, err := b.commit(ctx); err != nil {
		return measure.Row{}, err
	}
	if _, err := b.tutti.Run(ctx, "code", "source", "add", "control", "file://"+b.repo, "--webhook-secret-file", secret); err != nil {
		return measure.Row{}, err
	}
	if _, err := b.tutti.Run(ctx, "code", "source", "sync", "control", "--wait"); err != nil {
		return measure.Row{}, err
	}
	watch, err := measure.Start(ctx, b.tutti.Usage)
	if err != nil {
		return measure.Row{}, err
	}
	var took []time.Duration
	for range b.Runs {
		var one time.Duration
		if one, err = b.push(ctx); err != nil {
			break
		}
		took = append(took, one)
	}
	span, err := watch.Stop(err)
	if err != nil {
		return measure.Row{}, err
	}
	sum := measure.Summarize(took)
	return measure.Row{Server: "tutti", Case: fmt.Sprintf("push of %d of %d files", pushed, b.Files), Figures: map[string]float64{
		"deploys": float64(len(took)), "push_p50_ms": ms(sum.P50), "push_max_ms": ms(slices.Max(took)),
		"cpu_ms": 1000 * span.Server.Seconds() / float64(b.Runs), "others_cores": span.Cores(span.Others),
	}}, nil
}

func (b *bench) git(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"-C", b.repo, "-c", "user.name=bench", "-c", "user.email=bench@example.test"}, args...)
	out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput() //nolint:gosec // our own words
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return string(bytes.TrimSpace(out)), nil
}

func (b *bench) commit(ctx context.Context) (string, error) {
	if _, err := b.git(ctx, "add", "-A"); err != nil {
		return "", err
	}
	if _, err := b.git(ctx, "commit", "--quiet", "-m", "bench"); err != nil {
		return "", err
	}
	return b.git(ctx, "rev-parse", "HEAD")
}

// push changes files, says so by a webhook, and waits until the environment has the commit.
func (b *bench) push(ctx context.Context) (time.Duration, error) {
	b.turn++
	for i := range pushed {
		if err := b.write(i*(b.Files/pushed)+i%len(kinds), b.turn); err != nil {
			return 0, err
		}
	}
	commit, err := b.commit(ctx)
	if err != nil {
		return 0, err
	}
	client, err := b.tutti.API()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := b.webhook(ctx); err != nil {
		return 0, err
	}
	for {
		shown, err := api.SourceShow.Call(ctx, client, api.NameRequest{Name: "control"})
		if err != nil {
			return 0, err
		}
		for _, branch := range shown.Known {
			switch {
			case branch.Commit == commit:
				return time.Since(began), nil
			case branch.State == "failed":
				return 0, fmt.Errorf("the deploy failed: %s", branch.Error)
			}
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (b *bench) webhook(ctx context.Context) error {
	body, err := json.Marshal(map[string]string{"ref": "refs/heads/pushed"})
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, []byte(hex.EncodeToString(make([]byte, 32))))
	mac.Write(body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.tutti.URL()+"/code-manager/v1/webhook?source=control&type=github", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: b.tutti.Trust()}}).Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the webhook was answered with status %d", answer.StatusCode)
	}
	return nil
}
