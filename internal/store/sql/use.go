package sql

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Each use of a database file has a number, which stands in its header (user_version): odd while
// a server uses it, one more when it was closed. What a server writes is in the log tutti.db-wal
// first; only a file that was closed is whole without it. So a file with an odd number and
// without a log was copied alone from under a server, and lacks what was written last.
//
// The lock beside the file has the same number: a file with another one is not the one that was
// used last. After a kill -9 the file may be a step behind or ahead of the lock. While somebody
// else reads (a backup), the header may stay behind in the log for long; the lock says so.
const (
	useAt   = 60 // where user_version stands in the header
	inUse   = "in use"
	isEnded = "closed"
	ahead   = "its log is ahead"
)

// note is what a lock says.
type note struct {
	word   string // inUse or isEnded; empty: it is new
	number int64
	known  bool // it has a number; older ones have none
	behind bool
}

func (n note) String() string {
	text := fmt.Sprintf("%s %d", n.word, n.number)
	if n.behind {
		text += ", " + ahead
	}
	return text + "\n"
}

func readNote(text string) (n note) {
	for _, word := range []string{inUse, isEnded} {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(text), word); ok {
			_, err := fmt.Sscanf(rest, "%d", &n.number)
			n.word, n.known, n.behind = word, err == nil, strings.HasSuffix(rest, ahead)
		}
	}
	return n
}

// enter begins a use, unless the file is not what the last one left.
func (f *sqliteFile) enter() error {
	number, err := f.number()
	if err != nil {
		return unusable(f.path, err)
	}
	last := readNote(f.lock.said)
	f.clean = last.word != inUse
	if err := f.check(number, last); err != nil {
		return err
	}
	if last.known {
		number = max(number, last.number)
	}
	f.use = number + 1 + number%2
	if err := f.lock.write(note{word: inUse, number: f.use, behind: last.behind}.String()); err != nil {
		return unusable(f.path, err)
	}
	return nil
}

// number reads the header.
func (f *sqliteFile) number() (int64, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	var header [useAt + 4]byte
	if _, err := file.ReadAt(header[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if !strings.HasPrefix(string(header[:]), "SQLite format 3\x00") {
		return 0, nil // it is empty, or SQLite says what is wrong with it
	}
	return int64(binary.BigEndian.Uint32(header[useAt:])), nil
}

func (f *sqliteFile) check(number int64, last note) error {
	log, err := os.Stat(f.path + "-wal")
	logged := err == nil && log.Size() > 0
	switch noted := last.number; {
	case number%2 == 1 && err != nil && (last.word != isEnded || !last.known || noted != number),
		last.behind && !logged:
		return fault.New(fault.Conflict, "%s was copied while a server used it, without its log (%s-wal): "+
			"what was written last is missing, and the file may be torn. "+
			"Restore a backup (tutti backup restore), or bring the log back; to go on with the file as it is: tutti backup accept", f.path, f.path)
	case !last.known,
		last.word == inUse && number >= noted-2 && number <= noted+1,
		last.word == isEnded && number == noted,
		last.behind && number <= noted:
		return nil
	}
	return fault.New(fault.Conflict, "%s is not the file that was used here last (it is of use %d, the last one was %d): "+
		"an older or another one was put in its place. "+
		"Restore a backup (tutti backup restore), or bring the file back; to go on with this one: tutti backup accept", f.path, number, last.number)
}

// begin writes the number of this use where a copy of the file alone has it, too.
func (f *sqliteFile) begin(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", f.use)); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		return err
	}
	return f.say(inUse, f.use)
}

// say writes the lock, and whether the file itself has that number.
func (f *sqliteFile) say(word string, number int64) error {
	there, err := f.number()
	if err != nil {
		return unusable(f.path, err)
	}
	if err := f.lock.write(note{word: word, number: number, behind: there < number}.String()); err != nil {
		return unusable(f.path, err)
	}
	return nil
}

// leave ends the use, also when ctx is over; shut closes the file, whose last connection db is.
func (f *sqliteFile) leave(ctx context.Context, db *sql.DB, shut func() error) error {
	number := f.use + 1
	if _, err := db.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA user_version = %d", number)); err != nil {
		number-- // a full disk: the lock alone says that it was closed
	}
	err := shut()
	if err == nil {
		_ = f.say(isEnded, number) // without it the next start checks the file
	}
	f.lock.release()
	return err
}

// giveUp ends a use that did not come to be, also when ctx is over. What the last one left in the log may be in the file
// now, so the file gets another number, too.
func (f *sqliteFile) giveUp(ctx context.Context, db *sql.DB) {
	defer f.lock.release()
	if db == nil {
		_ = f.lock.write(f.lock.said)
		return
	}
	word := isEnded
	if !f.clean {
		word = inUse // it is still to be checked
	}
	_, err := db.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA user_version = %d", f.use+1))
	if _ = db.Close(); err != nil {
		_ = f.lock.write(f.lock.said)
		return
	}
	_ = f.say(word, f.use+1)
}

// Accept makes a database file usable again that was exchanged, or copied without its log, or whose records moved away,
// when somebody wants it as it is. Internal when it is damaged.
func Accept(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err != nil {
		return unusable(path, err)
	}
	file, err := claim(path)
	if err != nil {
		return err
	}
	defer file.lock.release()
	number, err := file.number()
	if err != nil {
		return unusable(path, err)
	}
	db, err := file.pool(1, 8<<20)
	if err != nil {
		return err
	}
	result, err := one[string](db.QueryRowContext(ctx, "PRAGMA integrity_check(1)"))
	if err == nil && result != "ok" {
		err = fault.New(fault.Internal, "%s is damaged (%s): restore a backup", path, result)
	}
	if err == nil {
		_, err = acceptMoved(ctx, plain{db}, sqliteDialect)
	}
	if err != nil {
		return explain(errors.Join(err, db.Close()), "look at the database")
	}
	if last := readNote(file.lock.said); last.known {
		number = max(number, last.number)
	}
	file.use = number + 1 + number%2
	return explain(file.leave(ctx, db, db.Close), "accept the database")
}
