package desk

import (
	"herald/cron"
	"herald/platforms"
	"herald/sessions"
)

// viewer is who looks at jobs or changes them.
type viewer struct {
	// all: every job is theirs (the command line, the dashboard, an admin by name in a chat with them alone).
	all bool
	// at is the conversation that they are in; the zero value means none.
	at sessions.Origin
}

// mayTouch reports whether a job is the viewer's to see and to change (P6): in a direct chat one that they made, in a
// room one that was made there, and where each person has a conversation of their own in the room, by them. A job that no
// chat has made, or that can't be read, is nobody's but of those who may see all.
func (v viewer) mayTouch(j cron.Job) bool {
	if v.all {
		return true
	}
	t, err := j.Plan.ReadTask()
	if err != nil || t.Origin == nil || t.Origin.Address.Platform == "" || t.Origin.Address.Platform != v.at.Address.Platform {
		return false
	}
	if v.at.ChatType == platforms.DM {
		return !t.Origin.Shared && samePerson(*t.Origin, v.at)
	}
	return t.Origin.Address.SameChat(v.at.Address) && (v.at.Shared || samePerson(*t.Origin, v.at))
}

// samePerson compares people of one platform, and of one workspace where the platform has those.
func samePerson(a, b sessions.Origin) bool {
	if a.Scope != b.Scope && a.Scope != "" && b.Scope != "" {
		return false
	}
	return a.User != "" && a.User == b.User || a.UserAlt != "" && a.UserAlt == b.UserAlt
}
