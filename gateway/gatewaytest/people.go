package gatewaytest

import "herald/platforms/platformtest/telegramtest"

// Forum is a group of the fake Telegram that has topics.
const Forum = int64(-1001)

// People who write in groups.
var (
	Ann = telegramtest.User{ID: 7001, FirstName: "Ann", Username: "ann"}
	Bob = telegramtest.User{ID: 7002, FirstName: "Bob", Username: "bob"}
)

// InGroups lets everybody talk in every group.
func InGroups(h *House) { h.Set["platforms.telegram.group_allow_from"] = "*" }
