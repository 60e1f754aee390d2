"""The parts of OmniForge that run inside the sandbox. Tools use the module `omniforge` instead."""
