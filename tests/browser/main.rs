//! Native stories.
