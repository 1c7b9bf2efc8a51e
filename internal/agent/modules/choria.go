package modules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/group"
	"github.com/tutti-project/tutti/internal/program/output"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Choria's protocols.
const (
	activationProtocol = "io.choria.mcorpc.external.v1.activation_request"
	requestProtocol    = "io.choria.mcorpc.external.v1.rpc_request"
	schemas            = "https://choria.io/schemas/mcorpc/external/v1/"
)

const (
	activationTime = 2 * time.Second
	maxReplyBytes  = 4 << 20
	maxSaidBytes   = 8 << 10 // of a stream of a program
	lingering      = 2 * time.Second
)

// request is what the program of an action is asked.
type request struct {
	Schema     string         `json:"$schema"`
	Protocol   string         `json:"protocol"`
	Agent      string         `json:"agent"`
	Action     string         `json:"action"`
	ID         string         `json:"requestid"`
	Sender     string         `json:"senderid"`
	Caller     string         `json:"callerid"`
	Collective string         `json:"collective"`
	TTL        int            `json:"ttl"` // seconds
	Time       int64          `json:"msgtime"`
	Data       jsontext.Value `json:"data"`
}

// reply is its answer.
type reply struct {
	Code    int            `json:"statuscode"`
	Message string         `json:"statusmsg,omitempty"`
	Data    jsontext.Value `json:"data,omitempty"`
}

// errand is what Main is told: one action of one program.
type errand struct {
	Program  []string       `json:"program"`
	Dir      string         `json:"dir"` // where the files go
	Config   string         `json:"config"`
	Facts    jsontext.Value `json:"facts"`
	Protocol string         `json:"protocol"`
	Request  jsontext.Value `json:"request"`
}

// done is what Main says.
type done struct {
	Reply   *reply `json:"reply,omitempty"`
	Problem string `json:"problem,omitempty"` // why there is no reply
	Stdout  string `json:"stdout,omitempty"`
	Stderr  string `json:"stderr,omitempty"`
}

func (f found) errand(cfg Config, protocol string, asked any) errand {
	e := errand{
		Program: commandLine(f.program), Config: filepath.Join(cfg.ConfigDir, f.name+".cfg"), Facts: jsontext.Value("{}"), Protocol: protocol,
		Request: pxp.Data(asked),
	}
	if cfg.Facts != nil {
		if facts := cfg.Facts(); len(facts) > 0 {
			e.Facts = facts
		}
	}
	return e
}

// activate asks a program whether it wants to be used on this node.
func (f found) activate(ctx context.Context, cfg Config) error {
	limit := cfg.Activation
	if limit == 0 {
		limit = activationTime
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e := f.errand(cfg, activationProtocol, struct {
		Schema   string `json:"$schema"`
		Protocol string `json:"protocol"`
		Agent    string `json:"agent"`
	}{schemas + "activation_request.json", activationProtocol, f.name})
	text, streams, err := e.perform(func(line []string) *exec.Cmd {
		cmd := exec.CommandContext(limited, line[0], line[1:]...) //nolint:gosec // the operator's own executables
		group.Own(cmd)
		return cmd
	})
	f.logStreams(ctx, cfg, streams, "activation")
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("it did not say within %s whether it is to be activated", limit)
	case err != nil:
		return fmt.Errorf("it was asked whether it is to be activated: %w", err)
	}
	var answer struct {
		Activate bool `json:"activate"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("it was asked whether it is to be activated, and its answer is not JSON of the right shape: %w", err)
	}
	if !answer.Activate {
		return errors.New("it says that it is not to be activated on this node")
	}
	return nil
}

// streams is the beginning of what a program printed.
type streams struct{ stdout, stderr output.Beginning }

// logStreams puts what a program printed into the log.
func (f found) logStreams(ctx context.Context, cfg Config, s *streams, of string) {
	logSaid(ctx, cfg, f.name, of, s.stdout.String(), s.stderr.String())
}

func logSaid(ctx context.Context, cfg Config, module, of, stdout, stderr string) {
	if text := strings.TrimSpace(stdout); text != "" {
		cfg.Log.InfoContext(ctx, "module printed", "module", module, "action", of, "text", text)
	}
	if text := strings.TrimSpace(stderr); text != "" {
		cfg.Log.ErrorContext(ctx, "module printed on standard error", "module", module, "action", of, "text", text)
	}
}

// perform makes the files, runs the program, and returns its reply. It removes the files.
func (e errand) perform(command func(line []string) *exec.Cmd) (text []byte, s *streams, err error) {
	s = &streams{output.Beginning{Most: maxSaidBytes}, output.Beginning{Most: maxSaidBytes}}
	dir, err := os.MkdirTemp(e.Dir, "choria-")
	if err != nil {
		return nil, s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	asked, replied, facts := filepath.Join(dir, "request.json"), filepath.Join(dir, "reply.json"), filepath.Join(dir, "facts.json")
	for path, content := range map[string][]byte{asked: e.Request, replied: nil, facts: e.Facts} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, s, err
		}
	}
	cmd := command(append(slices.Clone(e.Program), asked, replied, e.Protocol))
	cmd.Env = append(os.Environ(), "CHORIA_EXTERNAL_REQUEST="+asked, "CHORIA_EXTERNAL_REPLY="+replied, "CHORIA_EXTERNAL_PROTOCOL="+e.Protocol,
		"CHORIA_EXTERNAL_CONFIG="+e.Config, "CHORIA_EXTERNAL_FACTS="+facts)
	cmd.Dir = os.TempDir()
	cmd.Stdout, cmd.Stderr = &s.stdout, &s.stderr
	cmd.WaitDelay = lingering
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, s, fmt.Errorf("its program ended with an error: %w", err)
	}
	text, err = puppetenv.ReadBounded(replied, maxReplyBytes)
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = errors.New("its program wrote no reply")
	}
	return text, s, err
}

// choria is Choria's contract.
func (k *kept) choria(a action.Action, results *action.Schema, into *orders.Action) {
	into.Prepare = func(ctx context.Context, o orders.Order) (orders.Command, error) {
		if _, err := k.fresh(ctx); err != nil {
			return orders.Command{}, err
		}
		e := k.found.errand(k.cfg, requestProtocol, request{
			Schema: schemas + "rpc_request.json", Protocol: requestProtocol, Agent: k.found.name, Action: a.Name, ID: o.Transaction,
			Sender: string(o.Requester), Caller: "pcp=" + string(o.Requester), Collective: "mcollective", TTL: 60, Time: time.Now().Unix(), Data: o.Params,
		})
		e.Dir = o.Place
		return orders.Command{Path: k.cfg.Program[0], Args: slices.Clone(k.cfg.Program[1:]), Input: pxp.Data(e)}, nil
	}
	into.Results = func(o orders.Output) (jsontext.Value, error) {
		d, err := doneOf(o)
		if err != nil {
			return nil, err
		}
		return d.results(results)
	}
	into.Ended = func(ctx context.Context, o orders.Output) {
		if d, err := doneOf(o); err == nil {
			logSaid(ctx, k.cfg, k.found.name, a.Name, d.Stdout, d.Stderr)
		}
	}
}

// doneOf is what Main said.
func doneOf(o orders.Output) (d done, err error) {
	if o.Ended != "" || json.Unmarshal(o.Stdout, &d) != nil || d.Reply == nil && d.Problem == "" {
		return d, errors.New("returned no reply - stderr: " + orders.ErrorText(o))
	}
	return d, nil
}

// results makes results of a reply.
func (d done) results(schema *action.Schema) (jsontext.Value, error) {
	switch {
	case d.Problem != "":
		return nil, errors.New("did not reply: " + d.Problem)
	case d.Reply.Code == int(action.Aborted):
		aborted := &orders.Aborted{Message: strings.TrimSpace(d.Reply.Message)}
		if aborted.Message == "" {
			aborted.Message = "it failed without a word"
		}
		if d.Reply.Data.Kind() == '{' {
			aborted.Data = d.Reply.Data
		}
		return nil, aborted
	case d.Reply.Code != int(action.Done):
		return nil, fmt.Errorf("replied with the status %d: %s", d.Reply.Code, strings.TrimSpace(d.Reply.Message))
	}
	value, err := filled(schema, d.Reply.Data)
	if err != nil {
		return nil, err
	}
	if err := schema.Check(value); err != nil {
		return nil, fmt.Errorf("replied with data that its DDL does not allow: %s", fault.Detail(err))
	}
	return value, nil
}

// filled are data with the defaults of outputs that are missing, or nothing.
func filled(schema *action.Schema, data jsontext.Value) (jsontext.Value, error) {
	values := map[string]jsontext.Value{}
	if len(data) > 0 && data.Kind() != 'n' {
		if err := json.Unmarshal(data, &values); err != nil {
			return nil, errors.New("replied with data that are no object")
		}
	}
	for _, f := range schema.Fields() {
		if value, there := values[f.Name]; !there || value.Kind() == 'n' {
			delete(values, f.Name)
			if f.Default == nil {
				continue
			}
			usual, err := json.Marshal(f.Default)
			if err != nil {
				return nil, err
			}
			values[f.Name] = usual
		}
	}
	return json.Marshal(values)
}
