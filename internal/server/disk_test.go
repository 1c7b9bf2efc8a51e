package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// A full disk refuses writes with words, and takes them again when there is clearly room.
func TestADiskThatFillsUp(t *testing.T) {
	t.Parallel()
	free, broken := int64(1<<30), error(nil)
	d := newDisk(t.TempDir())
	d.room = func(string) (int64, error) { return free, broken }
	for _, step := range []struct {
		name    string
		free    int64
		broken  error
		refused bool
	}{
		{"room", 1 << 30, nil, false},
		{"little", fullBelow, nil, false},
		{"none", fullBelow - 1, nil, true},
		{"it cannot be looked at", 1 << 30, errors.New("no"), true},
		{"a little again", roomAbove - 1, nil, true},
		{"room again", roomAbove, nil, false},
		{"and less", fullBelow, nil, false},
	} {
		free, broken = step.free, step.broken
		d.looked = time.Time{} // as if time had passed
		err := d.admit()
		if refused := err != nil; refused != step.refused || refused != (d.problem() != nil) {
			t.Errorf("%s: %v, %v", step.name, err, d.problem())
		}
		if err != nil && (fault.Of(err) != fault.Unavailable || fault.RetryAfter(err) == 0 || !strings.Contains(fault.Detail(err), "disk is full (")) {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}

// The ballast is made where there is room, and given up for a start on a full disk only.
func TestBallast(t *testing.T) {
	t.Parallel()
	d := newDisk(t.TempDir())
	path := filepath.Join(d.path, ballastFile)
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			return -1
		}
		return info.Size()
	}
	free := int64(ballastAbove - 1)
	d.room = func(string) (int64, error) { return free, nil }
	for _, want := range []int64{-1, ballastBytes, ballastBytes} {
		if err := d.keepBallast(); err != nil || size() != want {
			t.Errorf("with %d free: %d bytes, %v, want %d", free, size(), err, want)
		}
		free = ballastAbove
	}
	makeRoom(d.path) // this machine's disk has room
	if size() != ballastBytes {
		t.Error("the ballast is gone without need")
	}
}
