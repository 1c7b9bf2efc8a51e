package api

// List is one page of items.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // give it as after= to get the next page; empty at the end
}

// PageRequest asks for one page.
type PageRequest struct {
	After string `query:"after"`
	Limit int    `query:"limit"` // 1 to 1000; 0 means 100
}

// TextPlace is a place in a text that somebody wrote.
type TextPlace struct {
	Line   int `json:"line"`   // from 1
	Column int `json:"column"` // from 1, in characters
}

// Problem is the body of every error answer.
type Problem struct {
	Kind       string `json:"kind"`           // of fault.Kind
	Message    string `json:"message"`        // what, and why
	Hint       string `json:"hint,omitempty"` // what to do next, where the message does not say it
	RequestID  string `json:"request_id,omitempty"`
	RetryAfter int64  `json:"retry_after,omitempty"` // seconds

	Place *TextPlace `json:"place,omitempty"` // in a query or condition: where it is wrong
	Check *CodeCheck `json:"check,omitempty"` // of code that was refused for its mistakes
}
