package telegram

import (
	"testing"

	"go.uber.org/goleak"

	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/telegramtest"
)

// A route of the fake that no test of the adapter calls fails the package.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(faults.Called(telegramtest.Routes, telegramtest.ForOthers...)))
}
