package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// clientForms are the forms into which clients decode answers, with the strictness of their parsers: what is of another type than a field is
// an error, what has no field is passed over.
var clientForms = map[string]map[string]func() any{
	"go-pe-client": {
		"tasks": func() any { return &goTasks{} }, "task": func() any { return &goTask{} }, "plans": func() any { return &goTasks{} },
		"inventory": func() any { return &goList[goInventoryNode]{} }, "node": func() any { return &goInventoryNode{} },
		"job": func() any { return &goJob{} }, "jobs": func() any { return &goList[goJob]{} }, "nodes": func() any { return &goList[goJobNode]{} },
		"report": func() any { return &goList[goReportItem]{} }, "error": func() any { return &goError{} },
		"started": func() any { return &goStarted{} }, "stopped": func() any { return &goStarted{} }, "scheduled": func() any { return &goStarted{} },
		"set": func() any { return &goStarted{} },
	},
	"jenkins": {
		"inventory": func() any { return &gsonInventory{} }, "started": func() any { return &gsonStarted{} }, "job": func() any { return &gsonJob{} },
		"nodes": func() any { return &gsonNodes{} }, "report": func() any { return &gsonReport{} }, "error": func() any { return &gsonError{} },
	},
}

// The Go client's fields. A null leaves a field as it is; its numbers are whole where it says int.
type (
	goLink struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	goList[T any] struct {
		Items      []T `json:"items"`
		Pagination struct {
			Limit  int `json:"limit"`
			Offset int `json:"offset"`
			Total  int `json:"total"`
		} `json:"pagination"`
		NextEvents struct {
			ID    string `json:"id"`
			Event string `json:"event"`
		} `json:"next-events"`
	}
	goEnvironment struct {
		Name   string `json:"name"`
		CodeID string `json:"code_id"`
	}
	goTasks struct {
		Environment goEnvironment `json:"environment"`
		Items       []struct {
			ID        goTaskID `json:"id"`
			Name      string   `json:"name"`
			Permitted bool     `json:"permitted"`
		} `json:"items"`
	}
	goTask struct {
		ID          goTaskID      `json:"id"`
		Name        string        `json:"name"`
		Environment goEnvironment `json:"environment"`
		Metadata    struct {
			Description  string `json:"description"`
			Private      bool   `json:"private"`
			SupportsNoop bool   `json:"supports_noop"`
			InputMethod  string `json:"input_method"`
			Parameters   map[string]struct {
				Description string `json:"description"`
				Type        string `json:"type"`
			} `json:"parameters"`
			Extensions      map[string]any `json:"extensions"`
			Implementations []struct {
				Name         string   `json:"name"`
				Requirements []string `json:"requirements"`
				InputMethod  string   `json:"input_method"`
			} `json:"implementations"`
		} `json:"metadata"`
		Files []struct {
			Filename string `json:"filename"`
			URI      struct {
				Path   string `json:"path"`
				Params struct {
					Environment string `json:"environment"`
				} `json:"params"`
			} `json:"uri"`
			SHA256    string `json:"sha256"`
			SizeBytes int    `json:"size_bytes"`
		} `json:"files"`
	}
	goInventoryNode struct {
		Name      string `json:"name"`
		Connected bool   `json:"connected"`
		Broker    string `json:"broker"`
		Timestamp string `json:"timestamp"`
	}
	goStarted struct {
		Job struct {
			goLink
			Nodes map[string]int `json:"nodes"`
		} `json:"job"`
		ScheduledJob goLink `json:"scheduled_job"`
		TaskTarget   goLink `json:"task_target"`
		Name         string `json:"name"`
	}
	goJob struct {
		goLink
		State      string         `json:"state"`
		Type       string         `json:"type"`
		Command    string         `json:"command"`
		Options    map[string]any `json:"options"`
		NodeCount  int            `json:"node_count"`
		NodeStates struct {
			Finished, Errored, Failed, Running int
		} `json:"node_states"`
		Owner       map[string]any `json:"owner"`
		Description string         `json:"description"`
		Timestamp   string         `json:"timestamp"`
		Environment goEnvironment  `json:"environment"`
		Status      []struct {
			State     string `json:"state"`
			EnterTime string `json:"enter_time"`
			ExitTime  string `json:"exit_time"`
		} `json:"status"`
		Nodes  goLink `json:"nodes"`
		Events goLink `json:"events"`
		Report goLink `json:"report"`
	}
	goJobNode struct {
		Transport       string         `json:"transport"`
		FinishTimestamp string         `json:"finish_timestamp"`
		TransactionUUID string         `json:"transaction_uuid"`
		StartTimestamp  string         `json:"start_timestamp"`
		Name            string         `json:"name"`
		Duration        float64        `json:"duration"`
		State           string         `json:"state"`
		Details         map[string]any `json:"details"`
		Result          map[string]any `json:"result"`
		LatestEventID   int            `json:"latest-event-id"`
		Timestamp       string         `json:"timestamp"`
	}
	goReportItem struct {
		Node      string `json:"node"`
		State     string `json:"state"`
		Timestamp string `json:"timestamp"`
		Events    []struct {
			ID        string `json:"id"`
			Type      string `json:"type"`
			Timestamp string `json:"timestamp"`
			Details   struct {
				Node   string `json:"node"`
				Detail struct {
					Noop bool `json:"noop"`
				} `json:"detail"`
			} `json:"details"`
			Message string `json:"message"`
		} `json:"events"`
	}
	goError struct {
		Kind    string `json:"kind"`
		Msg     string `json:"msg"`
		Details any    `json:"details"`
	}
)

// goTaskID is the link of a task: the client takes the module and the task's name out of it.
type goTaskID string

var goTaskLink = regexp.MustCompile(`^http.*/orchestrator/v1/tasks/([^/]+)/([^/]+)$`)

func (id *goTaskID) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, (*string)(id)); err != nil {
		return err
	}
	if !goTaskLink.MatchString(string(*id)) {
		return fmt.Errorf("%s has no module and name", *id)
	}
	return nil
}

// The plugin's fields, as Gson takes them: a null is no value, a text may be a number or a boolean, a whole number may be a text.
type (
	gsonStarted struct {
		Job struct {
			ID   gsonText `json:"id"`
			Name gsonText `json:"name"`
		} `json:"job"`
	}
	gsonInventory struct {
		Items []struct {
			Connected needed[bool] `json:"connected"`
			Name      gsonText     `json:"name"`
			Broker    gsonText     `json:"broker"`
			Timestamp *isoTime     `json:"timestamp"`
		} `json:"items"`
	}
	gsonJob struct {
		Items   []any       `json:"items"`
		ID      *gsonURL    `json:"id"`
		State   gsonText    `json:"state"`
		Name    gsonText    `json:"name"`
		Count   needed[int] `json:"node_count"`
		Options struct {
			Concurrency        *int           `json:"concurrency"`
			Noop               *bool          `json:"noop"`
			Trace              *bool          `json:"trace"`
			Debug              *bool          `json:"debug"`
			Scope              map[string]any `json:"scope"`
			EnforceEnvironment *bool          `json:"enforce_environment"`
			Environment        gsonText       `json:"environment"`
			Evaltrace          *bool          `json:"evaltrace"`
			Target             gsonText       `json:"target"`
		} `json:"options"`
		Owner struct {
			Email       gsonText   `json:"email"`
			IsRevoked   *bool      `json:"is_revoked"`
			LastLogin   *gsonTime  `json:"last_login"`
			IsRemote    *bool      `json:"is_remote"`
			Login       gsonText   `json:"login"`
			GroupIDs    []gsonText `json:"group_ids"`
			IsSuperuser *bool      `json:"is_superuser"`
			ID          gsonText   `json:"id"`
			RoleIDs     []int      `json:"role_ids"`
			DisplayName gsonText   `json:"display_name"`
			IsGroup     *bool      `json:"is_group"`
		} `json:"owner"`
		Timestamp *gsonTime `json:"timestamp"`
		Status    []struct {
			State     gsonText  `json:"state"`
			EnterTime *gsonTime `json:"enter_time"`
			ExitTime  *gsonTime `json:"exit_time"`
		} `json:"status"`
		Environment map[string]gsonText        `json:"environment"`
		Nodes       map[string]needed[gsonURL] `json:"nodes"` // it asks exactly there
		Report      map[string]needed[gsonURL] `json:"report"`
	}
	gsonNodes struct {
		Items []struct {
			Timestamp *gsonTime `json:"timestamp"`
			State     gsonText  `json:"state"`
			UUID      gsonText  `json:"transaction_uuid"`
			Name      gsonText  `json:"name"`
			Message   gsonText  `json:"message"`
			Details   needed[struct {
				ReportURL   *gsonURL        `json:"report-url"`
				Metrics     map[string]*int `json:"metrics"`
				Message     gsonText        `json:"message"`
				Hash        gsonText        `json:"hash"`
				Environment gsonText        `json:"environment"`
			}] `json:"details"` // its fields are asked for without a look whether it is there
		} `json:"items"`
	}
	gsonReport struct {
		Report []struct {
			Node          gsonText  `json:"node"`
			State         gsonText  `json:"state"`
			Timestamp     *gsonTime `json:"timestamp"`
			Certname      gsonText  `json:"certname"`
			UUID          gsonText  `json:"transaction_uuid"`
			Environment   gsonText  `json:"environment"`
			Configuration gsonText  `json:"configuration_version"`
			Metrics       struct {
				Resources needed[map[string]*int] `json:"resources"`
				Time      map[string]*float64     `json:"time"`
				Changes   struct{ Total *int }    `json:"changes"`
				Events    map[string]*int         `json:"events"`
			} `json:"metrics"`
			Events []struct {
				NewValue        any        `json:"new_value"`
				OldValue        any        `json:"old_value"`
				Report          gsonText   `json:"report"`
				Corrective      *bool      `json:"corrective_change"`
				RunStart        *isoTime   `json:"run_start_time"`
				Property        gsonText   `json:"property"`
				File            gsonText   `json:"file"`
				ContainingClass gsonText   `json:"containing_class"`
				Line            gsonText   `json:"line"`
				ResourceType    gsonText   `json:"resource_type"`
				Status          gsonText   `json:"status"`
				Configuration   gsonText   `json:"configuration_version"`
				ResourceTitle   gsonText   `json:"resource_title"`
				Environment     gsonText   `json:"environment"`
				Timestamp       *isoTime   `json:"timestamp"`
				RunEnd          *isoTime   `json:"run_end_time"`
				Received        *isoTime   `json:"report_receive_time"`
				Path            []gsonText `json:"containment_path"`
				Certname        gsonText   `json:"certname"`
				Message         gsonText   `json:"message"`
			} `json:"events"`
		} `json:"report"`
	}
	gsonError struct {
		Kind    gsonText       `json:"kind"`
		Msg     gsonText       `json:"msg"`
		Details map[string]any `json:"details"`
	}
)

// needed is a field that the plugin uses without a look whether it is null.
type needed[T any] struct{ value T }

func (n *needed[T]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return fmt.Errorf("a %T is null", n.value)
	}
	return json.Unmarshal(text, &n.value)
}

// gsonText is a text; Gson makes one of numbers and booleans, too.
type gsonText string

func (s *gsonText) UnmarshalJSON(text []byte) error {
	if strings.ContainsAny(string(text[:1]), "{[") {
		return fmt.Errorf("%s is no text", text)
	}
	*s = gsonText(text)
	return nil
}

// gsonURL is a java.net.URL: absolute.
type gsonURL string

func (u *gsonURL) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, (*string)(u)); err != nil {
		return err
	}
	if parsed, err := url.Parse(string(*u)); err != nil || parsed.Scheme == "" || parsed.Host == "" {
		return fmt.Errorf("%s is no absolute URL", *u)
	}
	return nil
}

// gsonTime has the format that the plugin gives its parser.
type gsonTime string

func (at *gsonTime) UnmarshalJSON(text []byte) error {
	return inFormat(text, (*string)(at), "2006-01-02T15:04:05Z")
}

// isoTime is a time where the parser has its own format, which ends with ISO 8601.
type isoTime string

func (at *isoTime) UnmarshalJSON(text []byte) error {
	return inFormat(text, (*string)(at), time.RFC3339Nano)
}

func inFormat(text []byte, at *string, format string) error {
	if err := json.Unmarshal(text, at); err != nil {
		return err
	}
	if len(format) == len("2006-01-02T15:04:05Z") && len(*at) != len(format) {
		return fmt.Errorf("%s has parts of seconds", *at)
	}
	_, err := time.Parse(format, *at)
	return err
}
