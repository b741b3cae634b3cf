package sandbox

// process is one row of the process table. start tells apart two processes that had the same pid; its unit
// is the platform's own and it is only compared for equality.
type process struct {
	pid, ppid, group int
	start            uint64
	zombie           bool
}

// descendants returns all processes below root, not root itself, parents before children.
func descendants(table []process, root int) []process {
	children := make(map[int][]process, len(table))
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var out []process
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, c := range children[queue[0]] {
			if seen[c.pid] {
				continue
			}
			seen[c.pid] = true
			out = append(out, c)
			queue = append(queue, c.pid)
		}
	}
	return out
}
