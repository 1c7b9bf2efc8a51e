package rbac

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/tutti-project/tutti/internal/fault"
)

// Cost is what hashing one password takes.
type Cost struct {
	Passes    uint32
	MemoryKiB uint32
	Threads   uint8
}

// DefaultCost is more than the least that is advised today (19 MiB, 2 passes);
// about a tenth of a second.
func DefaultCost() Cost { return Cost{Passes: 3, MemoryKiB: 32 << 10, Threads: 1} }

const (
	saltBytes = 16
	hashBytes = 32
)

// Hasher hashes and checks passwords, a few at a time. It may be used by many at once.
type Hasher struct {
	cost  Cost
	slots chan struct{} // those that compute
	queue chan struct{} // those, and who waits
	dummy string        // nobody's password, to spend the time on
}

// NewHasher returns a Hasher that computes so many at once; some more may wait,
// and what is beyond that is Unavailable.
func NewHasher(cost Cost, atOnce int) *Hasher {
	h := &Hasher{cost: cost, slots: make(chan struct{}, atOnce), queue: make(chan struct{}, 16*atOnce)}
	h.dummy = h.encode(make([]byte, saltBytes), make([]byte, hashBytes))
	return h
}

// Hash makes the stored form of a password, in PHC notation.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	return h.encode(salt, argon2.IDKey([]byte(password), salt, h.cost.Passes, h.cost.MemoryKiB, h.cost.Threads, hashBytes)), nil
}

// Check says whether password is the one that stored was made of. An empty or
// broken stored form fits no password, and takes as long as one that would.
func (h *Hasher) Check(ctx context.Context, stored, password string) (bool, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	parsed, err := parseHash(stored)
	if err != nil {
		parsed, _ = parseHash(h.dummy)
	}
	got := argon2.IDKey([]byte(password), parsed.salt, parsed.cost.Passes, parsed.cost.MemoryKiB, parsed.cost.Threads, hashBytes)
	return subtle.ConstantTimeCompare(got, parsed.hash) == 1 && err == nil, nil
}

// enter waits for a place to compute in.
func (h *Hasher) enter(ctx context.Context) (leave func(), err error) {
	select {
	case h.queue <- struct{}{}:
	default:
		return nil, fault.Later(2*time.Second, "too many log in at the same time; try again in a moment")
	}
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots; <-h.queue }, nil
	case <-ctx.Done():
		<-h.queue
		return nil, ctx.Err()
	}
}

func (h *Hasher) encode(salt, hash []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.cost.MemoryKiB, h.cost.Passes, h.cost.Threads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

type storedHash struct {
	cost       Cost
	salt, hash []byte
}

// parseHash reads the PHC notation. Costs beyond reason are refused: a row must
// not be able to take the machine's memory.
func parseHash(text string) (storedHash, error) {
	var s storedHash
	wrong := func(what string) (storedHash, error) {
		return s, fault.New(fault.Invalid, "the stored password is not argon2id in PHC notation: %s", what)
	}
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return wrong("algorithm or version")
	}
	costs := strings.Split(parts[3], ",")
	if len(costs) != 3 {
		return wrong("cost")
	}
	var numbers [3]uint64
	for i, key := range []string{"m=", "t=", "p="} {
		digits, ok := strings.CutPrefix(costs[i], key)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || n == 0 || strconv.FormatUint(n, 10) != digits {
			return wrong("cost")
		}
		numbers[i] = n
	}
	if numbers[0] < 8 || numbers[0] > 1<<20 || numbers[1] > 100 || numbers[2] > 64 {
		return wrong("a cost beyond reason")
	}
	s.cost = Cost{MemoryKiB: uint32(numbers[0]), Passes: uint32(numbers[1]), Threads: uint8(numbers[2])} //nolint:gosec // bounded above
	var err error
	strict := base64.RawStdEncoding.Strict()
	if s.salt, err = strict.DecodeString(parts[4]); err != nil || len(s.salt) < 8 || len(s.salt) > 64 {
		return wrong("salt")
	}
	if s.hash, err = strict.DecodeString(parts[5]); err != nil || len(s.hash) != hashBytes {
		return wrong("hash")
	}
	return s, nil
}

// Bounds of a password, in bytes.
const (
	minPassword = 10
	maxPassword = 512
)

// checkPassword refuses what is guessed first.
func checkPassword(user, password string) error {
	switch {
	case len(password) < minPassword:
		return fault.New(fault.Invalid, "the password has fewer than %d bytes; choose a longer one", minPassword)
	case len(password) > maxPassword:
		return fault.New(fault.Invalid, "the password has more than %d bytes", maxPassword)
	case strings.Contains(strings.ToLower(password), user):
		return fault.New(fault.Invalid, "the password holds the user's name; choose another")
	}
	return nil
}
