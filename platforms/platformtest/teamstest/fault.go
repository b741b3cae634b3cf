package teamstest

import (
	"time"

	"herald/platforms/platformtest/faults"
)

// Endpoint names a group of the fake's requests.
type Endpoint string

// The endpoints.
const (
	AnyConnector Endpoint = ""            // Send, Typing, Edit, Delete, Create, Members, Conversations
	Everything   Endpoint = "*"           // all of the fake
	OpenIDDoc    Endpoint = "openid"      // the metadata document
	Keys         Endpoint = "keys"        // the JWKS
	Token        Endpoint = "token"       // the token endpoint
	Send         Endpoint = "send"        // POST of an activity that people see, chunks of a stream included
	Typing       Endpoint = "typing"      // POST of a typing activity without a stream
	Edit         Endpoint = "edit"        // PUT of an activity
	Delete       Endpoint = "delete"      // DELETE of an activity
	React        Endpoint = "react"       // PUT or DELETE of a reaction
	Create       Endpoint = "create"      // POST v3/conversations
	Members      Endpoint = "members"     // members, pagedmembers
	Teams        Endpoint = "teams"       // v3/teams
	Attachments  Endpoint = "attachments" // v3/attachments
	Download     Endpoint = "download"    // GET of a pre-authorised URL
	Upload       Endpoint = "upload"      // PUT to a pre-authorised URL
	Graph        Endpoint = "graph"       // Graph
)

// endpoints are all groups that one request can belong to.
var endpoints = []Endpoint{OpenIDDoc, Keys, Token, Send, Typing, Edit, Delete, React, Create, Members, Teams, Attachments, Download,
	Upload, Graph}

// Routes are the endpoints, with how often they were called in this process.
var Routes = faults.NewRoutes("teamstest")

// ForOthers are routes that our adapter does not call. The tests of this package do: a client that nobody here wrote needs them.
var ForOthers = []string{string(Members)}

// Fault scripts a trouble of the fake's own answers. What an answer needs of Teams' shape (the error's JSON,
// Retry-After) is made of Status, RetryAfter, Code and Message.
type Fault struct {
	Kind faults.Kind
	// On is which requests go wrong, and Room, when set, the room whose requests do.
	On   Endpoint
	Room string
	// Times is how often. 0 is once, negative is until Heal.
	Times int
	// Status is what faults.Status answers. 429 opens a window of RetryAfter for the room; requests inside it
	// are refused and kept for Violations. 401 revokes the token that was used.
	Status     int
	RetryAfter time.Duration
	// NoHeader leaves the Retry-After header out of a 429.
	NoHeader bool
	// Code and Message are the error in the answer. Empty takes Teams' usual ones for Status.
	Code, Message string
	// Delay is how long faults.SlowBody and faults.Late wait.
	Delay time.Duration
}

// Order is how held activities are let go.
type Order string

// The orders.
const (
	InOrder   Order = "in order"
	Backwards Order = "backwards"
	Twice     Order = "twice"         // each one two times in a row
	AtOnce    Order = "at once"       // all at the same time, none waits for the one before
	Doubled   Order = "twice at once" // each one two times at the same time
)
