package server

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// Whoever may write to the data directory makes another token; the one before ends, and what was revoked stays so. It
// does not run beside others: the process is sent a signal.
func TestTheAdministratorsTokenIsRotated(t *testing.T) { //nolint:paralleltest // SIGHUP is the whole process's
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	defer signal.Stop(told)
	p := openParts(t, func(c *settings.Config) { c.AdminTokenLifetime = time.Hour })
	text := func() string {
		content, err := os.ReadFile(p.data.Join(datadir.TokenFile))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(content))
	}
	start := func() {
		if err := p.openToken(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	bearer := func(secret string) (fleet.Actor, error) { return p.access.Bearer(t.Context(), secret) }
	start()
	old := text()
	if actor, err := bearer(old); err != nil || !actor.BreakGlass {
		t.Fatalf("the first token: %+v, %v", actor, err)
	}
	rotated, err := datadir.RotateAdmin(p.data.Path)
	if err != nil || rotated.Server != os.Getpid() || rotated.File != p.data.Join(datadir.TokenFile) {
		t.Fatalf("%+v, %v", rotated, err)
	}
	<-told
	start() // as the server does when it is told
	fresh := text()
	if _, err := bearer(old); fault.Of(err) != fault.Denied || err == nil || fresh == old {
		t.Errorf("the token before: %v", err)
	}
	if _, err := bearer(fresh); err != nil {
		t.Errorf("the new token: %v", err)
	}
	tokens, err := p.store.Access.Tokens(t.Context(), rbac.AdminUser, rbac.Page{Limit: 10})
	if err != nil || len(tokens) != 1 || !tokens[0].ExpiresAt.Equal(tokens[0].CreatedAt.Add(time.Hour)) {
		t.Errorf("%+v, %v", tokens, err)
	}
	if _, err := p.store.Access.RevokeToken(t.Context(), rbac.AdminUser, rbac.AdminToken); err != nil {
		t.Fatal(err)
	}
	start()
	if _, err := bearer(fresh); fault.Of(err) != fault.Denied || err == nil {
		t.Errorf("a revoked token after a start: %v", err)
	}
}

// Without a server there is nobody to tell.
func TestATokenIsRotatedWithoutAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{dir, filepath.Join(dir, "nowhere")} {
		if rotated, err := datadir.RotateAdmin(none); fault.Of(err) != fault.Invalid || rotated.File != "" || fault.Hint(err) == "" {
			t.Errorf("%s, where no server was: %+v, %v", none, rotated, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("a directory without a server has now %v, %v", entries, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "ca"), 0o700); err != nil {
		t.Fatal(err)
	}
	rotated, err := datadir.RotateAdmin(dir)
	info, stat := os.Stat(rotated.File)
	if err != nil || stat != nil || rotated.Server != 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("%+v, %v, %v", rotated, err, stat)
	}
}
