package datadir

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
	d := NewDisk(t.TempDir())
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
		{"a little again", RoomAbove - 1, nil, true},
		{"room again", RoomAbove, nil, false},
		{"and less", fullBelow, nil, false},
	} {
		free, broken = step.free, step.broken
		d.looked = time.Time{} // as if time had passed
		err := d.Admit()
		if refused := err != nil; refused != step.refused || refused != (d.Problem() != nil) {
			t.Errorf("%s: %v, %v", step.name, err, d.Problem())
		}
		if err != nil && (fault.Of(err) != fault.Unavailable || fault.RetryAfter(err) == 0 || !strings.Contains(fault.Detail(err), "disk is full (")) {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}

// The ballast is made where there is room, and given up for a start on a full disk only.
func TestBallast(t *testing.T) {
	t.Parallel()
	d := NewDisk(t.TempDir())
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
		if err := d.KeepBallast(); err != nil || size() != want {
			t.Errorf("with %d free: %d bytes, %v, want %d", free, size(), err, want)
		}
		free = ballastAbove
	}
	makeRoom(d.path) // this machine's disk has room
	if size() != ballastBytes {
		t.Error("the ballast is gone without need")
	}
}
