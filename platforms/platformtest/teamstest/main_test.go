package teamstest

import (
	"testing"

	"go.uber.org/goleak"

	"herald/platforms/platformtest/faults"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(faults.Needed(Routes, ForOthers...)))
}
