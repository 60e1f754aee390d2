//! Where a run happens: slots, live runs, their cancellation.

mod gate;
mod live;

pub use gate::{Gate, GateError, GateOptions, Slot};
pub use live::{LiveEntry, LiveRuns};
