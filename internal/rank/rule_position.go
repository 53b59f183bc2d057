package rank

import "math/bits"

// farthestPosition is the cost of a word that is as far from its place in the query as can be.
const farthestPosition = 10

// exactPositions is the number of positions that are told apart one by one.
const exactPositions = 16

// bucketed is the resolution at which positions are compared: exact up to 15, then coarser and coarser.
func bucketed(position int) int {
	switch {
	case position < exactPositions:
		return position
	case position < 24:
		return 24
	case position <= 32:
		return 32
	default:
		return min(1<<bits.Len(uint(position-1)), 65535)
	}
}

// positionCost is the cost of a distance from the place in the query.
func positionCost(distance int) uint32 {
	switch {
	case distance <= 1:
		return uint32(distance)
	case distance <= 4:
		return 2
	case distance <= 7:
		return 3
	case distance <= 11:
		return 4
	case distance <= 16:
		return 5
	case distance <= 24:
		return 6
	case distance <= 64:
		return 7
	case distance <= 256:
		return 8
	case distance <= 1024:
		return 9
	default:
		return farthestPosition
	}
}

// placeCost is the cost of a node of n terms that stands at a position, with its place at start.
func placeCost(position, start, n int) uint32 {
	distance := bucketed(position) - start
	if distance < 0 {
		distance = -distance
	}
	cost := uint32(0)
	for i := range n {
		cost += positionCost(distance + i)
	}
	return cost
}
