package puppet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/yamljson"
)

// runSummary is what is read of last_run_summary.yaml. A run that got no catalog leaves most of it out.
type runSummary struct {
	Version struct {
		Config jsontext.Value `json:"config"`
	} `json:"version"`
	Resources map[string]float64 `json:"resources"`
	Time      map[string]float64 `json:"time"`

	text jsontext.Value // all of it
}

// The bounds of Puppet's files.
const (
	maxSummaryBytes   = 1 << 20
	maxResourcesBytes = 64 << 20
	maxLogBytes       = 4 << 20
	maxLogLines       = 1000
)

// readSummary reads the summary of the last run; there is none before the first.
func readSummary(path string) (runSummary, error) {
	s := runSummary{text: jsontext.Value("{}")}
	text, err := puppetenv.ReadBounded(path, maxSummaryBytes)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(text)) == 0 {
		return s, nil
	}
	var document []byte
	if err == nil {
		document, err = yamljson.ToJSON(text)
	}
	if err == nil {
		err = json.Unmarshal(document, &s)
	}
	if err != nil {
		return s, builtin.Abort("the summary of Puppet's last run, %s, cannot be read: %v", path, err)
	}
	s.text = document
	return s, nil
}

// ended says when the run ended, and how many seconds ago.
func (s runSummary) ended(now time.Time) (at int64, since *int64) {
	if at = int64(s.Time["last_run"]); at == 0 {
		return 0, nil
	}
	return at, new(now.Unix() - at)
}

func (s runSummary) configVersion() string {
	if len(s.Version.Config) == 0 || s.Version.Config.Kind() == 'n' {
		return "unknown"
	}
	var text string
	if json.Unmarshal(s.Version.Config, &text) == nil {
		return text
	}
	return string(s.Version.Config)
}

// summary is what last_run_summary gives.
type summary struct {
	OutOfSync        int            `json:"out_of_sync_resources"`
	Failed           int            `json:"failed_resources"`
	Corrected        int            `json:"corrected_resources"`
	Changed          int            `json:"changed_resources"`
	Total            int            `json:"total_resources"`
	RetrievalTime    float64        `json:"config_retrieval_time"`
	TotalTime        float64        `json:"total_time"`
	LastRun          int64          `json:"lastrun"`
	SinceLastRun     *int64         `json:"since_lastrun,omitzero"`
	ConfigVersion    string         `json:"config_version"`
	TypeDistribution map[string]int `json:"type_distribution"`
	Summary          jsontext.Value `json:"summary"`
	Logs             []logLine      `json:"logs,omitzero"`
}

type summaryInput struct {
	Logs bool `json:"logs"`
}

func (c Config) summary(ctx context.Context, in summaryInput) (any, error) {
	settings, err := c.settings(ctx)
	if err != nil {
		return nil, err
	}
	run, err := readSummary(settings["lastrunfile"])
	if err != nil {
		return nil, err
	}
	s := summary{
		OutOfSync: int(run.Resources["out_of_sync"]), Failed: int(run.Resources["failed"]), Corrected: int(run.Resources["corrective_change"]),
		Changed: int(run.Resources["changed"]), Total: int(run.Resources["total"]),
		RetrievalTime: run.Time["config_retrieval"], TotalTime: run.Time["total"], ConfigVersion: run.configVersion(), Summary: run.text,
	}
	s.LastRun, s.SinceLastRun = run.ended(time.Now())
	text, err := resourceList(settings["resourcefile"])
	if err != nil {
		return nil, err
	}
	s.TypeDistribution = typesIn(text)
	if in.Logs {
		s.Logs, err = logsIn(settings["lastrunreport"])
	}
	return s, err
}

// resourceList is Puppet's list of the resources of its last catalog, resources.txt: a line such as file[/etc/hosts] for each. Nothing: it has
// applied none.
func resourceList(path string) (string, error) {
	text, err := puppetenv.ReadBounded(path, maxResourcesBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", builtin.Abort("Puppet's list of resources cannot be read: %v", err)
	}
	return string(text), nil
}

// typesIn counts the types in a list of resources.
func typesIn(list string) map[string]int {
	types := map[string]int{}
	for line := range strings.Lines(list) {
		if name, _, ok := strings.Cut(line, "["); ok {
			types[typeName(name)]++
		}
	}
	return types
}

// typeName is a type as Puppet writes it: concat_file is Concat_file, a::b is A::B.
func typeName(name string) string {
	parts := strings.Split(name, "::")
	for i, part := range parts {
		if part != "" {
			parts[i] = strings.ToUpper(part[:1]) + strings.ToLower(part[1:])
		}
	}
	return strings.Join(parts, "::")
}

// logLine is one line that a run logged.
type logLine struct {
	TimeUTC int64  `json:"time_utc"`
	Time    int64  `json:"time"`
	Level   string `json:"level"`
	Source  string `json:"source"`
	Message string `json:"msg"`
}

// logsIn reads the log out of a report, which may be large: nothing else of it is looked at.
func logsIn(path string) ([]logLine, error) {
	section, whole, err := logSection(path)
	var read []struct {
		Level   string `yaml:"level"`
		Source  string `yaml:"source"`
		Message string `yaml:"message"`
		Time    string `yaml:"time"`
	}
	if err == nil {
		err = yaml.Unmarshal(section, &read)
	}
	if err != nil {
		return nil, builtin.Abort("the log in the report of Puppet's last run, %s, cannot be read: %v", path, err)
	}
	logs := []logLine{}
	for _, line := range read {
		if len(logs) == maxLogLines {
			whole = false
			break
		}
		at := unix(line.Time)
		logs = append(logs, logLine{TimeUTC: at, Time: at, Level: line.Level, Source: line.Source, Message: strings.TrimRight(line.Message, "\n")})
	}
	if !whole {
		last := logLine{Level: "warning", Source: "tutti", Message: fmt.Sprintf("there is more in %s; %s are shown", path, fault.Count(len(logs), "line"))}
		if len(logs) > 0 {
			last.Time, last.TimeUTC = logs[len(logs)-1].Time, logs[len(logs)-1].TimeUTC
		}
		logs = append(logs, last)
	}
	return logs, nil
}

// unix is a time as reports write it, in seconds since 1970.
func unix(text string) int64 {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999 -07:00", "2006-01-02 15:04:05.999999999 Z"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.Unix()
		}
	}
	return 0
}

// logSection is the list below the key logs of a report, as far as there is room; whole: all of it. Lines below a key of a report begin with
// a space or a dash, so that the next key is easily seen.
func logSection(path string) (section []byte, whole bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, true, nil
		}
		return nil, false, err
	}
	defer func() { _ = file.Close() }()
	var kept bytes.Buffer
	in, start := false, true // of a line
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadSlice('\n')
		if len(line) > 0 && start && isKey(line) {
			if in {
				return kept.Bytes(), true, nil
			}
			in = bytes.HasPrefix(line, []byte("logs:"))
			if line = line[min(len("logs:"), len(line)):]; !in {
				line = nil
			}
		}
		if in {
			kept.Write(line)
		}
		start = err == nil
		if kept.Len() > maxLogBytes {
			end := bytes.LastIndex(kept.Bytes(), []byte("\n- "))
			return kept.Bytes()[:max(end, 0)], false, nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return kept.Bytes(), true, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// isKey says whether a line begins with the key of a report.
func isKey(line []byte) bool { return line[0] >= 'a' && line[0] <= 'z' }
