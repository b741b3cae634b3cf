package discord

import (
	"testing"

	"go.uber.org/goleak"

	"herald/platforms/platformtest/discordtest"
	"herald/platforms/platformtest/faults"
)

// A route of the fake that no test of the adapter calls fails the package.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(faults.Called(discordtest.Routes, discordtest.ForOthers...)))
}
