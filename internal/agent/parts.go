package agent

import "errors"

func (d *daemon) assemble() (func() error, error) { return nil, errors.New("not yet") }
