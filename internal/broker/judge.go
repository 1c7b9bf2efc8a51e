package broker

import "github.com/tutti-project/tutti/internal/wire"

// Outcome is the word of the access log for what became of a message.
type Outcome string

// The outcomes, as the original's log says them.
const (
	Accepted         Outcome = "AUTHORIZATION_SUCCESS"
	NotAuthenticated Outcome = "AUTHENTICATION_FAILURE"
	NotAuthorized    Outcome = "AUTHORIZATION_FAILURE"
	SeveralTargets   Outcome = "MULTICAST_UNSUPPORTED"
	Undecodable      Outcome = "DESERIALIZATION_ERROR"
)

// The texts that clients may look for.
const (
	textUndecodable      = "Could not decode message"
	textNotAuthenticated = "Message not authenticated."
	textNotAuthorized    = "Message not authorized."
	textSeveralTargets   = "Multiple recipients no longer supported."
	textNotConnected     = "Not connected."
	textAlready          = "Session already associated."
)

// texts is what a sender is told.
var texts = map[Outcome]string{
	NotAuthenticated: textNotAuthenticated, NotAuthorized: textNotAuthorized, SeveralTargets: textSeveralTargets,
}

// judge decides whether a message may go to its target, which is of the kind to.
// Sender and target are filled in.
func judge(rules []Rule, from Presence, m wire.Message, to Party) Outcome {
	switch {
	case m.Sender != from.URI:
		return NotAuthenticated
	case !wire.IsPlain(m.Type) || !wire.IsPlain(string(m.Target)):
		return NotAuthorized
	case !allowed(rules, m.Type, from.Party, to):
		return NotAuthorized
	case len(m.Others) > 0 || m.Target.IsPattern():
		return SeveralTargets
	}
	return Accepted
}

// associate answers an associate request. It only says what is known already: the
// connection itself is the association. A refusal makes the original agent exit, so it is given
// only for what will never be right.
func associate(from Presence, m wire.Message) (wire.Association, Outcome) {
	answer := wire.Association{ID: m.ID}
	switch {
	case m.Sender == from.URI:
		answer.Success = true
		return answer, Accepted
	case m.Sender.Name() != from.URI.Name():
		answer.Reason = textNotAuthenticated
		return answer, NotAuthenticated
	default:
		answer.Reason = textAlready
		return answer, NotAuthorized
	}
}
