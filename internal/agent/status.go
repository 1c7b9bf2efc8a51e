package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
)

// Status is how an agent stands.
type Status struct {
	Name               string           `json:"name"`
	Version            string           `json:"version"`
	Process            int              `json:"process"`
	Started            time.Time        `json:"started"`
	Servers            []string         `json:"servers"`
	Connection         Connection       `json:"connection"`
	Transactions       Transactions     `json:"transactions"`
	LastPuppetRun      *LastRun         `json:"last_puppet_run,omitempty"` // of those that were ordered or scheduled
	Catalog            Kept             `json:"catalog"`
	Runs               Runs             `json:"runs"`
	Facts              FactsStatus      `json:"facts"`
	UndeliveredReports int              `json:"undelivered_reports"`
	ModuleProblems     []action.Problem `json:"module_problems,omitempty"` // modules that are there and cannot be used
	CertificateExpires time.Time        `json:"certificate_expires"`
	Data               string           `json:"data"`
}

// Connection is that to the servers.
type Connection struct {
	Connected bool       `json:"connected"`
	Server    string     `json:"server,omitempty"`  // HOST:PORT that is connected, or was tried last
	Since     *time.Time `json:"since,omitempty"`   // of the connection, or of its loss
	Attempts  int        `json:"attempts"`          // that failed since then
	Problem   string     `json:"problem,omitempty"` // why the last attempt failed, or the last connection ended
	Lost      int        `json:"lost"`              // connections since the agent started
}

// Transactions counts the orders that the agent keeps.
type Transactions struct {
	Running     int `json:"running"`
	Waiting     int `json:"waiting"`     // for their turn, or for files
	Undelivered int `json:"undelivered"` // outcomes that no server has taken yet
	Kept        int `json:"kept"`        // all of them
}

// LastRun is the last Puppet run that was ordered.
type LastRun struct {
	Transaction string     `json:"transaction"`
	Status      string     `json:"status"` // running, success, failure, undetermined
	Start       time.Time  `json:"start"`
	End         *time.Time `json:"end,omitempty"`
}

// Kept is the catalog that the node keeps.
type Kept struct {
	Digest      string     `json:"digest,omitempty"` // empty: none
	Mode        string     `json:"mode,omitempty"`   // live, released
	Generation  int64      `json:"generation,omitempty"`
	Environment string     `json:"environment,omitempty"`
	Version     string     `json:"version,omitempty"`
	UUID        string     `json:"uuid,omitempty"`
	Fetched     *time.Time `json:"fetched,omitempty"`
	Asked       *time.Time `json:"asked,omitempty"`   // when a server said last that there is no other
	Problem     string     `json:"problem,omitempty"` // why none said so the last time
}

// Runs is when the node applies it by itself.
type Runs struct {
	Scheduled bool          `json:"scheduled"`
	Noop      bool          `json:"noop,omitempty"`
	Interval  string        `json:"interval,omitempty"`
	Running   bool          `json:"running,omitempty"`
	Last      *ScheduledRun `json:"last,omitempty"`
	Next      *time.Time    `json:"next,omitempty"`
	Why       string        `json:"why,omitempty"`      // told, scheduled, retry
	Failures  int           `json:"failures,omitempty"` // runs in a row that could not be done
}

// ScheduledRun is the last run of the schedule that is over.
type ScheduledRun struct {
	Status  string    `json:"status"`            // changed, unchanged, failed, disabled, not done
	Pending int       `json:"pending,omitempty"` // resources that noop kept from changing
	Detail  string    `json:"detail,omitempty"`
	Catalog string    `json:"catalog,omitempty"` // empty: what the server gave it then
	Report  string    `json:"report,omitempty"`  // its transaction_uuid
	Begin   time.Time `json:"begin"`
	End     time.Time `json:"end"`
}

// socketName is where a running agent answers, in its data directory.
const socketName = "agent.sock"

// Bounds of an answer on the socket.
const (
	maxStatusBytes = 1 << 20
	statusTime     = 10 * time.Second
)

// What may be said on the socket, on a line; whatever it is, the status is the answer.
const (
	askStatus   = "status"
	askFacts    = "facts" // and submit them now
	maxAskBytes = 64
)

// statusSocket answers everybody on the socket with the status. Only the owner of the
// data directory gets to it.
type statusSocket struct {
	listener net.Listener
	status   func() (Status, error)
	facts    signal // somebody wants them submitted
}

// openSocket takes the socket's place. The caller holds the data directory, so what is there is old.
func openSocket(ctx context.Context, data string, status func() (Status, error), facts signal) (*statusSocket, error) {
	path := filepath.Join(data, socketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unwritable(path, err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the status socket %s cannot be made: %v; a shorter path for data may help", path, cause(err))
	}
	return &statusSocket{listener, status, facts}, nil
}

// run answers until ctx is done.
func (d *statusSocket) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = d.listener.Close() })
	defer stop()
	for {
		c, err := d.listener.Accept()
		if err != nil {
			return nil // it was closed
		}
		d.answer(c)
	}
}

func (d *statusSocket) answer(c net.Conn) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(statusTime))
	line, _ := bufio.NewReader(io.LimitReader(c, maxAskBytes)).ReadString('\n') // who says nothing closes its side
	if line == askFacts+"\n" {
		d.facts.give()
	}
	status, err := d.status()
	text, encoding := json.Marshal(status)
	if err == nil && encoding == nil {
		_, _ = c.Write(text) // who asked has gone
	}
}

// AskStatus asks the agent that runs with these settings; NotFound if none does.
func AskStatus(ctx context.Context, c Config) (Status, error) { return ask(ctx, c, askStatus) }

// AskFacts has it submit the node's facts now, and returns how it stands before.
func AskFacts(ctx context.Context, c Config) (Status, error) { return ask(ctx, c, askFacts) }

func ask(ctx context.Context, config Config, line string) (Status, error) {
	var s Status
	data := config.Data
	path := filepath.Join(data, socketName)
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrPermission) {
		return s, fault.New(fault.Denied, "%s may be read by its owner only; run this as the user that the agent runs as", path)
	}
	if err != nil {
		return s, fault.Wrap(fault.NotFound, err, "no agent runs on %s; start it with `tutti agent run%s`", data, config.dirFlag())
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(statusTime))
	_, err = io.WriteString(c, line+"\n")
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(c, maxStatusBytes))
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fault.Wrap(fault.Unavailable, err, "the agent on %s does not answer; its log may say why", data)
	}
	return s, nil
}
