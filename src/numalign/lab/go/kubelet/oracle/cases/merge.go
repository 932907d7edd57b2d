// Family tm_merge.

package cases

// Merge asks a topology manager policy for the best hint.
type Merge struct {
	ID            string     `json:"id"`
	Policy        string     `json:"policy"`
	PreferClosest bool       `json:"prefer_closest"`
	NUMANodes     []int      `json:"numa_nodes"`
	Distances     [][]uint64 `json:"distances"`
	Providers     []HintMap  `json:"providers"`
}

// MergeAnswer is the policy's choice.
type MergeAnswer struct {
	Merge
	Best  Hint `json:"best"`
	Admit bool `json:"admit"`
}
