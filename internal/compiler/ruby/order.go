package ruby

import (
	"bytes"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// checkOrder refuses what no compiler should see. Facts come from nodes: they
// may be anything.
func checkOrder(order compile.Order, limit int64) *compile.Error {
	if _, err := fleet.ParseCertname(string(order.Node)); err != nil {
		return inputError(err.Error())
	}
	if _, err := fleet.ParseEnvironment(string(order.Environment)); err != nil {
		return inputError(err.Error())
	}
	if _, err := fleet.ParseDigest(string(order.Version)); err != nil {
		return inputError("version: " + err.Error())
	}
	var total int64
	for _, field := range orderFields(order) {
		if !isObject(field.value, field.optional) {
			return inputError(field.name + " must be one JSON object, name to value")
		}
		total += int64(len(field.value))
	}
	if total > limit {
		return inputError("facts and the rest of the order are larger than allowed")
	}
	return nil
}

type orderField struct {
	name     string
	value    json.RawMessage
	optional bool
}

func orderFields(o compile.Order) []orderField {
	return []orderField{
		{"facts", o.Facts, false},
		{"trusted", o.Trusted, true},
		{"server_facts", o.ServerFacts, true},
		{"classes", o.Classes, true},
		{"parameters", o.Parameters, true},
		{"data", o.Data, true},
	}
}

func isObject(value json.RawMessage, optional bool) bool {
	value = bytes.TrimSpace(value)
	if optional && (len(value) == 0 || string(value) == "null") {
		return true
	}
	return len(value) > 0 && value[0] == '{' && json.Valid(value)
}

func inputError(message string) *compile.Error {
	return &compile.Error{Cause: compile.CauseInput, Message: message}
}

func toWire(o compile.Order) *wireOrder {
	return &wireOrder{
		Node: string(o.Node), Facts: o.Facts, Trusted: o.Trusted, ServerFacts: o.ServerFacts,
		Classes: o.Classes, Parameters: o.Parameters, Data: o.Data,
	}
}
