package puppet

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/builtin"
)

// Data answers the data function puppet: the results of status.
func Data(c Config) builtin.Data {
	return func(ctx context.Context, _ string) (any, error) { return c.status(ctx, nothing{}) }
}

// resourceData is what the data function resource gives.
type resourceData struct {
	Managed bool `json:"managed"` // the last catalog had it
	summary
}

// ResourceData answers the data function resource: whether Puppet manages it, and the figures of the last run.
func ResourceData(c Config) builtin.Data {
	return func(ctx context.Context, reference string) (any, error) {
		settings, err := c.settings(ctx)
		if err != nil {
			return nil, err
		}
		last, err := c.summary(ctx, summaryInput{})
		if err != nil {
			return nil, err
		}
		data := resourceData{}
		data.summary, _ = last.(summary)
		list, err := resourceList(settings["resourcefile"])
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(list) {
			data.Managed = data.Managed || strings.EqualFold(strings.TrimSpace(line), reference)
		}
		return data, nil
	}
}
