package sessions

// Space is a namespace of the value store: small JSON values under a name, for what has no table of its own. Each space has
// one owner, which alone knows the shape of its values. Spaces lists all of them.
type Space string

// The spaces. Spaces says what each holds.
const (
	SpaceApproval        Space = "approval"
	SpaceGrant           Space = "approval.grant"
	SpaceBotLoop         Space = "botloop"
	SpaceBrief           Space = "brief"
	SpaceConfirm         Space = "confirm"
	SpaceConfirmed       Space = "confirmed"
	SpaceIncident        Space = "cron.incident"
	SpaceDead            Space = "delivery.dead"
	SpaceGate            Space = "delivery.gate"
	SpaceDirectory       Space = "directory"
	SpaceGateway         Space = "gateway"
	SpaceHome            Space = "home"
	SpaceHousekeeping    Space = "housekeeping"
	SpaceJobTopic        Space = "job_topic"
	SpacePairingApproved Space = "pairing.approved"
	SpacePairingFailures Space = "pairing.failures"
	SpacePairingPending  Space = "pairing.pending"
	SpacePairingRequests Space = "pairing.requests"
	SpaceProbe           Space = "probe"
	SpaceProcess         Space = "process"
	SpaceQuestion        Space = "prompt"
	SpaceQueueEdit       Space = "queue.edit"
	SpaceRetry           Space = "retry"
	SpaceTodo            Space = "todo"
)

// SpacesOfAdapters begins the space of each account's adapter: "adapter/" and the account. See MemoryOf.
const SpacesOfAdapters = "adapter/"

// SpaceInfo describes a space.
type SpaceInfo struct {
	Space Space
	// Owner is the package that writes it, below herald/.
	Owner string
	// Name is what a value's name says; Holds is what the value is.
	Name, Holds string
	// Passing is true where a value means nothing any more once it is old: housekeeping removes it after a week.
	Passing bool
}

// Spaces is the one table of the spaces, by name.
func Spaces() []SpaceInfo {
	return []SpaceInfo{
		{SpaceApproval, "gateway/turn/ask", "a hash of turn, call and text", "a question about a dangerous call, and its decision", true},
		{SpaceGrant, "gateway/access", "a session", "the kinds of danger that it needs no approval for", false},
		{SpaceBotLoop, "gateway/access", "a chat", "how often a bot was answered there", false},
		{SpaceBrief, "gateway/jobs/brief", "an outbox row", "the run that the brief belongs to", false},
		{SpaceConfirm, "gateway/command", "a random id", "a command that waits for its person to confirm it", true},
		{SpaceConfirmed, "gateway/command", "a person and a command", "that the person does not want to be asked again", false},
		{SpaceIncident, "gateway/jobs/view", "a job and a cause", "that somebody has seen it", false},
		{SpaceDead, "gateway/delivery", "a chat", "why nothing is sent there any more", false},
		{SpaceGate, "gateway/delivery", "an address or an account", "until when nothing is sent", true},
		{SpaceDirectory, "gateway/directory", "an account", "its rooms and people", false},
		{SpaceGateway, "gateway", "started", "when the daemon was started last", false},
		{SpaceHome, "gateway/directory", "a platform", "the home channel that /sethome has chosen", false},
		{SpaceHousekeeping, "gateway", "a task", "when it was done last", false},
		{SpaceJobTopic, "gateway/jobs/brief", "a job and a chat", "the topic that was made for it", false},
		{SpacePairingApproved, "gateway/access", "a platform and a person", "who was let in by a code", false},
		{SpacePairingFailures, "gateway/access", "a platform", "wrong codes, for the limit", false},
		{SpacePairingPending, "gateway/access", "a platform and a person", "a code that waits", false},
		{SpacePairingRequests, "gateway/access", "a platform and a person", "codes that were asked for, for the limit", false},
		{SpaceProbe, "gateway/admin", "writable", "nothing: it is written to see whether the store takes writes", false},
		{SpaceProcess, "gateway/toolbox", "a process", "a background process, for the next start", false},
		{SpaceQuestion, "gateway/turn/ask", "a random id", "a question to a person, and the answer", true},
		{SpaceQueueEdit, "gateway/command", "an inbox row", "the changed text of a message that waits", false},
		{SpaceRetry, "gateway/command", "an inbox row", "the message that /retry has taken up", true},
		{SpaceTodo, "gateway/toolbox", "a session", "its task list", false},
	}
}
