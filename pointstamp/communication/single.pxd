from pointstamp.communication.mailbox cimport Mailbox, message


cdef class SingleCommunicator:
    cdef Mailbox _mailbox
    cdef object _awake

    cpdef list receive(self)
    cpdef flush(self)
