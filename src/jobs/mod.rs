//! Where a run happens: slots, live runs, their cancellation.

mod gate;

pub use gate::{Gate, GateError, GateOptions, Slot};
