package sql

import (
	"context"
	"database/sql/driver"
	"fmt"

	"modernc.org/sqlite"

	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// sqliteConnector opens connections that know the function regexp(pattern, text).
// The driver is a value of its own, so nothing global is changed.
type sqliteConnector struct {
	driver *sqlite.Driver
	name   string
}

func newSQLiteConnector(name string) (sqliteConnector, error) {
	c := sqliteConnector{&sqlite.Driver{}, name}
	var known query.Patterns
	err := c.driver.RegisterDeterministicScalarFunction("regexp", 2, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		if args[0] == nil || args[1] == nil {
			return nil, nil //nolint:nilnil // NULL
		}
		pattern, _ := args[0].(string)
		text, ok := args[1].(string)
		if !ok {
			text = fmt.Sprint(args[1])
		}
		found, err := known.Match(pattern, text)
		return bit(found), err
	})
	return c, err
}

// Connect implements driver.Connector.
func (c sqliteConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.name) }

// Driver implements driver.Connector.
func (c sqliteConnector) Driver() driver.Driver { return c.driver }
