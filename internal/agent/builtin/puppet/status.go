package puppet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
)

// status is how Puppet's agent stands.
type status struct {
	Applying       bool   `json:"applying"`
	Idling         bool   `json:"idling"`
	Enabled        bool   `json:"enabled"`
	DaemonPresent  bool   `json:"daemon_present"`
	LastRun        int64  `json:"lastrun"`
	SinceLastRun   *int64 `json:"since_lastrun,omitzero"` // nil: there was none
	Status         string `json:"status"`
	DisableMessage string `json:"disable_message"`
	Message        string `json:"message"`
}

func (c Config) status(ctx context.Context, _ nothing) (any, error) {
	settings, err := c.settings(ctx)
	if err != nil {
		return nil, err
	}
	run, err := readSummary(settings["lastrunfile"])
	if err != nil {
		return nil, err
	}
	var s status
	s.DisableMessage, s.Enabled = lockMessage(settings["agent_disabled_lockfile"])
	s.Applying, s.DaemonPresent = works(settings["agent_catalog_run_lockfile"]), works(settings["pidfile"])
	s.Idling = s.DaemonPresent && !s.Applying
	s.LastRun, s.SinceLastRun = run.ended(time.Now())
	s.describe()
	return s, nil
}

func (s *status) describe() {
	switch {
	case !s.Enabled:
		s.Status = "disabled"
	case s.Applying:
		s.Status = "applying a catalog"
	case s.Idling:
		s.Status = "idling"
	default:
		s.Status = "stopped"
	}
	s.Message = "Currently " + s.Status + "; no run has completed yet"
	if s.SinceLastRun != nil {
		s.Message = "Currently " + s.Status + "; last completed run " + words(*s.SinceLastRun) + " ago"
	}
}

// words are a time as people read it.
func words(seconds int64) string {
	days, rest := seconds/86400, seconds%86400
	hours, minutes, left := rest/3600, rest%3600/60, rest%60
	switch {
	case days > 0:
		return fmt.Sprintf("%s %d hours %d minutes %02d seconds", fault.Count(int(days), "day"), hours, minutes, left)
	case hours > 0:
		return fmt.Sprintf("%d hours %d minutes %02d seconds", hours, minutes, left)
	case minutes > 0:
		return fmt.Sprintf("%d minutes %02d seconds", minutes, left)
	}
	return fmt.Sprintf("%02d seconds", left)
}

// maxLockBytes bounds a lock.
const maxLockBytes = 64 << 10

// lockMessage says why Puppet's agent is disabled, if it is.
func lockMessage(path string) (message string, enabled bool) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "", true
	}
	text, err := puppetenv.ReadBounded(path, maxLockBytes)
	var lock lock
	if err != nil || json.Unmarshal(text, &lock) != nil {
		return "", false // an empty file is a lock, too
	}
	return lock.Message, false
}

// works says whether the process runs that a file names, and is one of Puppet: its number may be another's by now.
func works(path string) bool {
	text, err := puppetenv.ReadBounded(path, maxLockBytes)
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 || !alive(pid) {
		return false
	}
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err != nil || strings.Contains(string(line), "puppet") // without such a file the system does not tell
}
